import { createMiddleware } from "hono/factory";
import { HTTPException } from "hono/http-exception";
import { errors, jwtVerify } from "jose";

/** What authenticate stores in the context of a request. */
export interface Variables {
  user: string;
}

const audience = "notes";

/**
 * authenticate accepts requests with a JSON Web Token that is signed with the secret JWT_KEY
 * (HS256). The subject of the token is the user.
 */
export const authenticate = createMiddleware<{ Variables: Variables }>(async (c, next) => {
  const [scheme, token] = (c.req.header("authorization") ?? "").split(" ");
  if (scheme.toLowerCase() !== "bearer" || !token) throw unauthorized("send a bearer token");
  c.set("user", await verify(token));
  await next();
});

async function verify(token: string): Promise<string> {
  // The platform keeps the secret in memory, and a new value is seen at once.
  const key = new TextEncoder().encode(await cs.secrets.get("JWT_KEY"));
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: ["HS256"],
      audience,
      requiredClaims: ["sub", "exp"],
    });
    return payload.sub!;
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw unauthorized("the token has expired");
    if (error instanceof errors.JOSEError) throw unauthorized("the token is not valid");
    throw error;
  }
}

function unauthorized(message: string): HTTPException {
  const res = new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } });
  return new HTTPException(401, { message, res });
}
