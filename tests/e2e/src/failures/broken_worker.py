# A worker of Dynamo that is ready, registers its model, and fails every request: the frontend answers 500.
import asyncio, os
from dynamo.llm import ModelInput, ModelType, WorkerType, register_model
from dynamo.runtime import dynamo_worker

async def generate(request, context=None):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")
    yield

@dynamo_worker()
async def worker(runtime):
    endpoint = runtime.endpoint(os.environ["DYN_NAMESPACE"] + ".backend.generate")
    kinds = ModelType.Chat | ModelType.Completions
    await register_model(ModelInput.Tokens, kinds, endpoint, "lab/tiny-qwen3", worker_type=WorkerType.Aggregated)
    await endpoint.serve_endpoint(generate)

asyncio.run(worker())
