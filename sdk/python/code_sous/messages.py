"""The messages of the stream of workers, from the descriptors of worker.proto that the package contains."""

from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

METHOD = "/sous.worker.v1.WorkerService/Lifecycle"

_pool = descriptor_pool.DescriptorPool()


def _message(name: str) -> Any:
    """Returns the class of a message."""
    descriptor = _pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(_pool).GetPrototype(descriptor)  # before protobuf 4.22


def _status() -> descriptor_pb2.FileDescriptorProto:
    """Describes google.rpc.Status, in which gRPC has the details of an error, with its Any."""
    file = descriptor_pb2.FileDescriptorProto(name="sous/status.proto", package="sous.grpc", syntax="proto3")
    fields = descriptor_pb2.FieldDescriptorProto
    detail = file.message_type.add(name="Detail")
    detail.field.add(name="type_url", number=1, type=fields.TYPE_STRING, label=fields.LABEL_OPTIONAL)
    detail.field.add(name="value", number=2, type=fields.TYPE_BYTES, label=fields.LABEL_OPTIONAL)
    status = file.message_type.add(name="Status")
    status.field.add(name="code", number=1, type=fields.TYPE_INT32, label=fields.LABEL_OPTIONAL)
    status.field.add(name="message", number=2, type=fields.TYPE_STRING, label=fields.LABEL_OPTIONAL)
    status.field.add(name="details", number=3, type=fields.TYPE_MESSAGE, type_name=".sous.grpc.Detail", label=fields.LABEL_REPEATED)
    return file


def _load() -> None:
    image = descriptor_pb2.FileDescriptorSet.FromString(files(__package__).joinpath("worker.binpb").read_bytes())
    for file in [*image.file, _status()]:
        _pool.AddSerializedFile(file.SerializeToString())


_load()
LifecycleRequest = _message("sous.worker.v1.LifecycleRequest")
LifecycleResponse = _message("sous.worker.v1.LifecycleResponse")
Error = _message("sous.worker.v1.Error")
Status = _message("sous.grpc.Status")
