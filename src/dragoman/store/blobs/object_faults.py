"""What an object store and the way to it raise, as an error that says what happened and what to do.

Their own words are not shown: a refusal repeats the access key, and an address may hold a token.
"""

from __future__ import annotations

import re

from dragoman.errors import StoreUnavailable

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_NOBODY = ("169.254.169.254", "169.254.170.2", "must be specified", "metadata.google.internal")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")
_DENIED = ("PermissionDeniedError", "UnauthenticatedError")


def translate(error: Exception, place: str, doing: str) -> StoreUnavailable:
    """`doing` is what we were about to do, such as "an attachment cannot be read"."""
    text = str(error).partition("Debug source")[0]
    found, code = _STATUS.search(text), _CODE.search(text)
    status = int(found[1]) if found else 404 if isinstance(error, FileNotFoundError) else 0
    status = 403 if type(error).__name__ in _DENIED else status
    what, hint, retryable = _explain(status, code[1] if code else "", str(error), place)
    return StoreUnavailable(f"{doing}: {place} {what}", hint, retryable=retryable)


def names_no_bucket(error: FileNotFoundError) -> bool:
    """Whether it is the bucket that is missing, and not one object in it."""
    return any(sign in str(error) for sign in _NO_BUCKET)


def _explain(status: int, code: str, text: str, place: str) -> tuple[str, str, bool]:
    scheme = place.partition(":")[0]
    known = f" ({code})" if code else ""
    if any(sign in text for sign in _NOBODY):
        return "was asked without credentials", f"set {_CREDENTIALS[scheme]} in the environment", False
    if code == "RequestTimeTooSkewed":
        return f"refuses the time of this machine{known}", "set its clock", False
    if status in (401, 403):
        hint = (
            f"see the credentials in the environment ({_CREDENTIALS[scheme]}), and that they may list, read, "
            "write and delete there"
        )
        return f"does not let us in{known}", hint, False
    if status == 404:
        return f"is not there{known}", "create the bucket, or name another one: blobs = …", False
    if status in (301, 307, 400) or "redirect" in text:
        hint = "see whether it is in another region, or at another endpoint"
        return f"refuses the request{known}", hint, False
    if status == 429 or status >= 500:
        return f"cannot answer now (HTTP {status}{', ' + code if code else ''})", "try again later", True
    if "BadScheme" in text:
        hint = "name an https endpoint, or set AWS_ALLOW_HTTP=true"
        return "is reached by http, without encryption", hint, False
    if "HTTP error" in text:
        return "cannot be reached", "see the network, the endpoint and the proxy; try again later", True
    return "gave an answer that cannot be understood", "see whether its endpoint is one of this kind", True
