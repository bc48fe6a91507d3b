import { GetObjectCommand, ListObjectsV2Command, NoSuchKey, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const response = (statusCode, body, headers = {}) => ({ response: { statusCode, headers, body: new Response(body).body } });

export default async function () {
	const calls = [];
	const requestHandler = {
		metadata: { handlerProtocol: "http/1.1" },
		async handle(req) {
			calls.push([req.method, req.hostname, req.path, req.query, req.headers["content-type"] ?? null, /^AWS4-HMAC-SHA256 Credential=AKID\//.test(req.headers.authorization)]);
			if (req.method === "PUT") return response(200, "", { etag: '"abc"' });
			if (req.path.endsWith("missing")) return response(404, '<?xml version="1.0"?><Error><Code>NoSuchKey</Code><Message>none</Message></Error>', { "content-type": "application/xml" });
			if (req.path.endsWith("file.txt")) return response(200, "contents é", { "content-length": "11", "x-amz-meta-a": "b" });
			return response(200, '<?xml version="1.0"?><ListBucketResult><Name>b</Name><KeyCount>2</KeyCount><Contents><Key>a &amp; b</Key><Size>3</Size><LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents><Contents><Key>c</Key><Size>4</Size></Contents></ListBucketResult>', { "content-type": "application/xml" });
		},
	};
	const client = new S3Client({ region: "eu-north-1", credentials: { accessKeyId: "AKID", secretAccessKey: "SECRET" }, requestHandler, maxAttempts: 1 });
	const list = await client.send(new ListObjectsV2Command({ Bucket: "bucket", Prefix: "x/" }));
	const put = await client.send(new PutObjectCommand({ Bucket: "bucket", Key: "dir/file.txt", Body: "hello", ContentType: "text/plain" }));
	const get = await client.send(new GetObjectCommand({ Bucket: "bucket", Key: "file.txt" }));
	const missing = await client.send(new GetObjectCommand({ Bucket: "bucket", Key: "missing" })).catch((err) => [err.name, err instanceof NoSuchKey, err.$metadata.httpStatusCode]);
	const url = await getSignedUrl(client, new GetObjectCommand({ Bucket: "bucket", Key: "a b.txt" }), { expiresIn: 60, signingDate: new Date("2026-01-02T03:04:05Z") });
	return { list: list.Contents, put: put.ETag, get: [await get.Body.transformToString(), get.Metadata], missing, url, calls };
}
