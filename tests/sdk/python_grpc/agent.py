"""One of the programs of the suite `crosswise`; see there for what it does."""

import asyncio
import sys
import tempfile

from v2.nacos import ClientConfigBuilder, NacosNamingService, RegisterInstanceParam, SubscribeServiceParam


async def told(instances):
    print("ports", *[instance.port for instance in instances], flush=True)


async def main(server, namespace, service, port):
    with tempfile.TemporaryDirectory(prefix="agent-python-") as scratch:
        builder = ClientConfigBuilder().server_address(server).namespace_id(namespace)
        config = builder.log_dir(scratch).log_level("ERROR").cache_dir(scratch).build()
        naming = await NacosNamingService.create_naming_service(config)
        await naming.subscribe(SubscribeServiceParam(service_name=service, subscribe_callback=told))
        assert await naming.register_instance(RegisterInstanceParam(service_name=service, ip="10.1.2.3", port=int(port)))
        print("registered", flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
