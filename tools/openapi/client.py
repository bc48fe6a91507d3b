"""Uses a running server by the client that OpenAPI Generator makes of its document: publish a
function, call it, list its activations in pages, and read an error.

Usage: python3 client.py URL, beside the package sous_client. It exits with 1 if an answer is
not the expected one."""

import base64
import json
import os
import sys

import sous_client
from sous_client.api.activations_api import ActivationsApi
from sous_client.api.functions_api import FunctionsApi
from sous_client.api.invoke_api import InvokeApi
from sous_client.api.versions_api import VersionsApi
from sous_client.api.web_api import WebApi


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: got {got!r}, want {want!r}")


configuration = sous_client.Configuration(host=sys.argv[1])
configuration.access_token = os.environ.get("SOUS_KEY")  # the constructor leaves it unset
client = sous_client.ApiClient(configuration)
tenant, namespace, function = "t_acme01", "default", "greet"
functions = FunctionsApi(client)
source = b'export default (event) => ({ statusCode: 200, body: "hello " + (event.name ?? event.rawPath) });'

functions.create_function(tenant, namespace, {"name": function})
files = {"function.js": base64.b64encode(source).decode()}
draft = functions.upload_draft(tenant, namespace, function, {"files": files})
version = VersionsApi(client).publish_version(
    tenant, namespace, function, {"draft_id": draft.draft_id, "alias": "prod"})
same("version", version.version, 1)

for name in ["Ada", "Grace", "Lin"]:
    outcome = InvokeApi(client).invoke_function(
        tenant, namespace, function, {"ref": {"alias": "prod"}, "event": {"name": name}})
    same("status", outcome.status, "success")
    same("result", outcome.result, {"statusCode": 200, "body": f"hello {name}"})

web = WebApi(client).web_get(tenant, namespace, function, "prod", "there")
same("web", web, "hello /v1/web/t_acme01/default/greet/prod/there")

statuses, more = [], {}
while True:
    page = ActivationsApi(client).list_activations(tenant, namespace=namespace, function=function, limit=2, **more)
    statuses += [activation.status for activation in page.items]
    if page.next_cursor is None:
        break
    more = {"cursor": page.next_cursor}
same("activations", statuses, ["success"] * 4)

try:
    functions.get_function(tenant, namespace, "ghost")
    sys.exit("a missing function: got an answer, want status 404")
except sous_client.ApiException as refused:
    same("status of a missing function", refused.status, 404)
    same("code of a missing function", json.loads(refused.body)["code"], "CS_FUNCTION_NOT_FOUND")
