// Register, find, select and remove instances.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRST_BEAT, connect, direct, holds, lease, unique, until } from './harness.js';

const IP = '10.1.2.3';

test('the server status is UP, and DOWN where nothing listens', async () => {
  assert.equal(await (await connect()).getServerStatus(), 'UP');
  assert.equal(await (await connect({ serverList: '127.0.0.1:1' })).getServerStatus(), 'DOWN');
});

test('a registration is found at once and whole', async () => {
  const client = await connect();
  const service = unique('svc');
  const metadata = { zone: 'a', sign: '1+1=2 & 100% "x"', encoded: 'a%2Fb', text: '服务 🚀', empty: '' };
  await client.registerInstance(service, { ip: IP, port: 8080, weight: 2.5, clusterName: 'c1', metadata });

  const [host, ...more] = await client.getAllInstances(service, 'DEFAULT_GROUP', '', false);
  assert.deepEqual(more, []);
  assert.equal(host.instanceId, `${IP}#8080#c1#DEFAULT_GROUP@@${service}`);
  assert.equal(host.serviceName, `DEFAULT_GROUP@@${service}`);
  assert.deepEqual([host.ip, host.port, host.clusterName, host.weight], [IP, 8080, 'c1', 2.5]);
  assert.deepEqual([host.healthy, host.valid, host.enabled, host.ephemeral], [true, true, true, true]);
  assert.deepEqual(host.metadata, metadata);
  assert.deepEqual(client.faults, []);
});

test('a service that does not exist is an empty list', async () => {
  const client = await connect();
  assert.deepEqual(await client.getAllInstances(unique('svc'), 'DEFAULT_GROUP', '', false), []);
  assert.deepEqual(await client.getAllInstances(unique('svc')), []);
  assert.deepEqual(client.faults, []);
});

test('selectInstances takes healthy and enabled instances that have a weight', async () => {
  const client = await connect();
  const service = unique('svc');
  const server = direct(client);
  await server.register(service, { ip: IP, port: 1001 });
  await server.register(service, { ip: IP, port: 1002, weight: 0 });
  await server.register(service, { ip: IP, port: 1003, enable: false });
  await server.register(service, { ip: IP, port: 1004, healthy: false });

  const ports = hosts => hosts.map(host => host.port).sort();
  assert.deepEqual(ports(await client.selectInstances(service, 'DEFAULT_GROUP', '', true, false)), [1001]);
  assert.deepEqual(ports(await client.selectInstances(service, 'DEFAULT_GROUP', '', false, false)), [1004]);
  assert.deepEqual(ports(await client.getAllInstances(service, 'DEFAULT_GROUP', '', false)), [1001, 1002, 1004]);
  assert.deepEqual(ports(await client.selectInstances(service)), [1001]);
});

test('groups are told apart', async () => {
  const client = await connect();
  const service = unique('svc');
  await client.registerInstance(service, { ip: IP, port: 1001 }, 'g1');
  await client.registerInstance(service, { ip: IP, port: 1002 }, 'g2');

  const ports = async group => (await client.getAllInstances(service, group, '', false)).map(host => host.port);
  assert.deepEqual(await ports('g1'), [1001]);
  assert.deepEqual(await ports('g2'), [1002]);
  assert.deepEqual(await ports(), []);

  await client.deregisterInstance(service, { ip: IP, port: 1001 }, 'g1');
  assert.deepEqual(await direct(client).list(service, { groupName: 'g1' }), []);
  assert.equal((await direct(client).list(service, { groupName: 'g2' })).length, 1);
});

test('clusters are told apart', async () => {
  const client = await connect();
  const service = unique('svc');
  for (const [clusterName, port] of [['c1', 1001], ['c1', 1002], ['c2', 1003]]) {
    await client.registerInstance(service, { ip: IP, port, clusterName });
  }
  const ports = async clusters =>
    (await client.getAllInstances(service, 'DEFAULT_GROUP', clusters, false)).map(host => host.port).sort();
  assert.deepEqual(await ports('c1'), [1001, 1002]);
  assert.deepEqual(await ports('c2'), [1003]);
  assert.deepEqual(await ports('c1,c2'), [1001, 1002, 1003]);
  assert.deepEqual(await ports('none'), []);
});

test('namespaces are told apart, and none is public', async () => {
  const service = unique('svc');
  const [one, other, without, open] = await Promise.all(
    [{}, {}, { namespace: undefined }, { namespace: 'public' }].map(options => connect(options)),
  );
  await one.registerInstance(service, { ip: IP, port: 1001 });
  assert.deepEqual(await other.getAllInstances(service, 'DEFAULT_GROUP', '', false), []);
  assert.deepEqual(await open.getAllInstances(service, 'DEFAULT_GROUP', '', false), []);

  await open.registerInstance(service, { ip: IP, port: 1002 });
  // An absent namespace reaches the server as an empty parameter.
  const [host] = await without.getAllInstances(service, 'DEFAULT_GROUP', '', false);
  assert.equal(host.port, 1002);
  await open.deregisterInstance(service, { ip: IP, port: 1002 });
});

test('leaving removes the instance, and leaving again is no error', async () => {
  const client = await connect();
  const service = unique('svc');
  await client.registerInstance(service, { ip: IP, port: 1001 });
  await client.deregisterInstance(service, { ip: IP, port: 1001 });
  assert.deepEqual(await direct(client).list(service), []);
  await client.deregisterInstance(service, { ip: IP, port: 1001 });
  assert.deepEqual(client.faults, []);
});

test('a refused registration is an error, and stores nothing', async () => {
  const client = await connect();
  const service = unique('svc');
  await assert.rejects(client.registerInstance(service, { ip: IP, port: 70000 }), /after all servers/);
  assert.match(client.faults[0], /code: 400 msg: .*port/s);
  assert.deepEqual(await direct(client).list(service), []);
});

test('credentials in each call do no harm', async () => {
  // This SDK never logs in: it sends user name and password as parameters of every request.
  const client = await connect({ username: 'somebody', password: 'secret+word' });
  const service = unique('svc');
  await client.registerInstance(service, { ip: IP, port: 1001 });
  assert.equal((await client.getAllInstances(service, 'DEFAULT_GROUP', '', false)).length, 1);
  assert.ok(client.requests.every(({ data }) => data.username === 'somebody'));
});

test('the service list counts and names services', async () => {
  const client = await connect();
  for (const name of ['b', 'a', 'c']) await client.registerInstance(name, { ip: IP, port: 1001 });
  await client.registerInstance('d', { ip: IP, port: 1001 }, 'g1');
  assert.deepEqual(await client._serverProxy.getServiceList(1, 2, 'DEFAULT_GROUP'), { count: 3, data: ['a', 'b'] });
  assert.deepEqual(await client._serverProxy.getServiceList(2, 2, 'DEFAULT_GROUP'), { count: 3, data: ['c'] });
  assert.deepEqual(await client._serverProxy.getServiceList(1, 10, 'g1'), { count: 1, data: ['d'] });
});

test('beats bring an expired instance back with its data, and keep it', async () => {
  const client = await connect();
  const service = unique('svc');
  const metadata = { ...lease(500, 1500, 3000), zone: 'a' };
  await client.registerInstance(service, { ip: IP, port: 8080, weight: 2, clusterName: 'c1', metadata });
  const hosts = () => direct(client).list(service);
  const beats = () => client.requests.filter(({ path }) => path.endsWith('/instance/beat')).length;

  // Whether the lease ends before the first beat depends on when that comes; after some beats it is there in any case.
  await until(beats, count => count >= 3, 'the SDK beats', FIRST_BEAT);
  const [host, ...more] = await until(hosts, found => found.length > 0, 'the instance is listed');
  assert.deepEqual(more, []);
  assert.deepEqual([host.ip, host.port, host.clusterName, host.weight], [IP, 8080, 'c1', 2]);
  assert.deepEqual(host.metadata, metadata);

  const before = beats();
  await holds(hosts, found => found.length === 1 && found[0].healthy, 'beats keep it healthy', 4500);
  // The interval that the server told, 500 ms, is the one that is kept: not the default of 5 s.
  assert.ok(beats() - before >= 4, `${beats() - before} beats in 4.5 s`);
  assert.deepEqual(client.faults, []);
});
