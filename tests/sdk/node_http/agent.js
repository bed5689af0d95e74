// One of the programs of the suite `crosswise`; see there for what it does.

import naming from 'nacos-naming';

const [serverList, namespace, serviceName, port] = process.argv.slice(2);
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const client = new naming.NacosNamingClient({ serverList, namespace, logger: quiet });
client.on('error', error => console.error(error));
await client.ready();
client.subscribe(serviceName, hosts =>
  console.log(['ports', ...hosts.filter(host => host.healthy).map(host => host.port)].join(' ')));
await client.registerInstance(serviceName, {
  ip: '10.1.2.3',
  port: Number(port),
  metadata: {
    'preserved.heart.beat.interval': '1000',
    'preserved.heart.beat.timeout': '4000',
    'preserved.ip.delete.timeout': '8000',
  },
});
console.log('registered');
process.stdin.on('end', () => process.exit()).resume();
