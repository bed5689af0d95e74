// Changes reach a subscriber by UDP, well before it polls again.
//
// This SDK names the address of the machine's network interface as `clientIP`, while it reaches the server over loopback and
// listens on all addresses: a push has to go to where the request came from.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import zlib from 'node:zlib';
import { FIRST_BEAT, atRest, byPush, connect, direct, holds, lease, polls, subscribe, unique, until } from './harness.js';

const IP = '10.1.2.3';
const at = port => `${IP}:${port}`;
const keys = state => Object.keys(state).sort();
const is = (...ports) => state => JSON.stringify(keys(state)) === JSON.stringify(ports.map(at).sort());

const unpacked = datagram => (datagram[0] === 0x1f && datagram[1] === 0x8b ? zlib.gunzipSync(datagram) : datagram);
const parsed = datagram => {
  const { type, data, lastRefTime } = JSON.parse(unpacked(datagram).toString());
  return { type, data: JSON.parse(data), lastRefTime };
};

/** A subscriber at rest to a service with one instance, and the states that it is told. */
async function subscribed(info = {}) {
  const client = await connect();
  const service = unique('svc');
  const server = direct(client);
  await server.register(service, { ip: IP, port: 1001 });
  const told = subscribe(client, { serviceName: service, ...info });
  await until(() => told, states => states.some(is(1001)), 'the subscription starts with the state');
  await atRest(client, service);
  return { client, service, server, told };
}

// They mostly wait, and none knows of the others.
describe('push', { concurrency: true }, () => {
  test('added, changed and removed instances are pushed', async () => {
    const { client, service, server, told } = await subscribed();
    const push = (change, accept, what) => byPush(client, service, told, change, accept, what);

    await push(() => server.register(service, { ip: IP, port: 1002 }), is(1001, 1002), 'a new instance');
    await push(
      () => server.update(service, { ip: IP, port: 1002, metadata: '{"v":"2"}', weight: 5 }),
      state => state[at(1002)]?.metadata.v === '2' && state[at(1002)].weight === 5,
      'changed metadata and weight',
    );
    await push(() => server.update(service, { ip: IP, port: 1002, enabled: false }), is(1001), 'a disabled instance');
    await push(() => server.update(service, { ip: IP, port: 1002, enabled: true }), is(1001, 1002), 'an enabled instance');
    await push(() => server.deregister(service, { ip: IP, port: 1001 }), is(1002), 'a removed instance');
    assert.deepEqual(client.faults, []);
  });

  test('a push holds what a poll holds', async () => {
    const { client, service, server, told } = await subscribed();
    await byPush(client, service, told, () => server.register(service, { ip: IP, port: 1002 }), is(1001, 1002), 'a new instance');

    const { type, data, lastRefTime } = parsed(client.datagrams.at(-1));
    assert.equal(type, 'dom');
    // The SDK reads it as a double and echoes it in its acknowledgement.
    assert.ok(Number.isSafeInteger(lastRefTime), `lastRefTime ${lastRefTime}`);
    assert.equal(data.name, `DEFAULT_GROUP@@${service}`);
    // Without clusters this SDK subscribes to `DEFAULT`.
    assert.equal(data.clusters, 'DEFAULT');
    assert.equal(data.cacheMillis, 10000);
    assert.ok(Math.abs(data.lastRefTime - Date.now()) < 60_000, `inner lastRefTime ${data.lastRefTime}`);
    const byPort = hosts => hosts.toSorted((a, b) => a.port - b.port);
    assert.deepEqual(byPort(data.hosts), byPort(await server.list(service)));
  });

  test('a large push comes compressed, a small one plain', async () => {
    const { client, service, server, told } = await subscribed();
    await byPush(client, service, told, () => server.update(service, { ip: IP, port: 1001, weight: 2 }), state =>
      state[at(1001)]?.weight === 2, 'a small change');
    const small = client.datagrams.at(-1);
    assert.ok(small.length < 1024, `${small.length} bytes`);
    assert.equal(small[0], '{'.charCodeAt(0));

    const metadata = JSON.stringify({ long: 'x'.repeat(3000) });
    await byPush(
      client, service, told, () => server.register(service, { ip: IP, port: 1002, metadata }), is(1001, 1002), 'a large one',
    );
    const large = client.datagrams.at(-1);
    assert.deepEqual([large[0], large[1]], [0x1f, 0x8b]);
    assert.ok(large.length < 1500, `${large.length} bytes`);
  });

  test('pushes are acknowledged and so not sent again', async () => {
    const { client, service, server, told } = await subscribed();
    const { succeed } = await server.pushState();
    await byPush(client, service, told, () => server.register(service, { ip: IP, port: 1002 }), is(1001, 1002), 'a new instance');
    await until(() => server.pushState(), state => state.succeed > succeed, 'the acknowledgement is counted');

    // The server would send a push without acknowledgement again after 10 s.
    const sequences = () => client.datagrams.map(datagram => parsed(datagram).lastRefTime);
    await holds(sequences, seen => new Set(seen).size === seen.length, 'no datagram comes twice', 12_000);
  });

  test('beats are no change and push nothing', async () => {
    const { client, service, told } = await subscribed();
    const metadata = { ...lease(500, 15000, 30000), beats: 'yes' };
    await byPush(
      client, service, told,
      () => client.registerInstance(service, { ip: IP, port: 1001, metadata }), state => state[at(1001)]?.metadata.beats, 'metadata',
    );
    const pushed = client.datagrams.length;
    const beats = () => client.requests.filter(({ path }) => path.endsWith('/instance/beat')).length;
    await until(beats, count => count >= 4, 'the SDK beats', FIRST_BEAT);
    assert.equal(client.datagrams.length, pushed);
  });

  test('an expiring instance is pushed as unhealthy and then as gone', async () => {
    const { client, service, server, told } = await subscribed();
    const metadata = JSON.stringify(lease(500, 2000, 5000));
    await byPush(
      client, service, told,
      () => server.register(service, { ip: IP, port: 1002, metadata }), state => state[at(1002)]?.healthy === true, 'the instance',
    );
    await byPush(client, service, told, async () => {}, state => state[at(1002)]?.healthy === false, 'its bad health');
    await byPush(client, service, told, async () => {}, is(1001), 'its end');
  });

  test('a subscription to a cluster is pushed that cluster alone', async () => {
    const client = await connect();
    const service = unique('svc');
    const server = direct(client);
    await server.register(service, { ip: IP, port: 1001, clusterName: 'c1' });
    await server.register(service, { ip: IP, port: 2001, clusterName: 'c2' });
    const told = subscribe(client, { serviceName: service, clusters: 'c1' });
    await until(() => told, states => states.some(is(1001)), 'the state of c1');
    await atRest(client, service);

    await server.register(service, { ip: IP, port: 2002, clusterName: 'c2' });
    await byPush(
      client, service, told, () => server.register(service, { ip: IP, port: 1002, clusterName: 'c1' }), is(1001, 1002), 'c1',
    );
    assert.deepEqual(told.filter(state => keys(state).some(key => key.includes(':2'))), []);
  });

  test('one client may hold several subscriptions of one service', async () => {
    const client = await connect();
    const service = unique('svc');
    const server = direct(client);
    await server.register(service, { ip: IP, port: 1001 });
    await server.register(service, { ip: IP, port: 2001, clusterName: 'c2' });
    // Without clusters this SDK subscribes to `DEFAULT`, while its getAllInstances asks for all clusters.
    const told = subscribe(client, service);
    await until(() => told, states => states.some(is(1001)), 'the state of DEFAULT');
    const all = async () => (await client.getAllInstances(service)).map(host => host.port).sort();
    assert.deepEqual(await all(), [1001, 2001]);
    await atRest(client, service, 2);

    const before = polls(client, service);
    await server.register(service, { ip: IP, port: 1002 });
    await until(() => told, states => states.some(is(1001, 1002)), 'the change in DEFAULT');
    await until(all, ports => ports.join() === '1001,1002,2001', 'the change in the list of all clusters');
    assert.equal(polls(client, service), before, 'a poll brought it, not a push');
  });

  test('a subscription to a group is pushed that group alone', async () => {
    const { client, service, server, told } = await subscribed();
    const other = subscribe(client, { serviceName: service, groupName: 'g1' });
    await atRest(client, service, 2);
    await byPush(
      client, service, other, () => server.register(service, { ip: IP, port: 3001, groupName: 'g1' }), is(3001), 'the group',
    );
    assert.deepEqual(told.filter(state => !is(1001)(state)), []);
  });

  test('a subscription to a service that does not exist yet is pushed its first instance', async () => {
    const client = await connect();
    const service = unique('svc');
    const told = subscribe(client, service);
    await atRest(client, service);
    await byPush(client, service, told, () => direct(client).register(service, { ip: IP, port: 1001 }), is(1001), 'the first');
  });

  test('an unsubscribed listener hears nothing more', async () => {
    const { client, service, server, told } = await subscribed();
    let heard = 0;
    const listener = () => {
      heard += 1;
    };
    client.subscribe({ serviceName: service }, listener);
    await until(() => heard, count => count === 1, 'it is told the state that is known already');
    client.unSubscribe({ serviceName: service }, listener);
    await byPush(client, service, told, () => server.register(service, { ip: IP, port: 1002 }), is(1001, 1002), 'a new instance');
    assert.equal(heard, 1);
  });

  test('the subscriber is listed', async () => {
    const { client, service, server } = await subscribed();
    const [subscriber, ...more] = await server.subscribers(service);
    assert.deepEqual(more, []);
    assert.equal(subscriber.agent, 'Nacos-Java-Client:v1.0.0');
    assert.equal(subscriber.port, client._hostReactor._pushReceiver.udpPort);
    assert.equal(subscriber.serviceName, `DEFAULT_GROUP@@${service}`);
    assert.equal(subscriber.cluster, 'DEFAULT');
    assert.equal(subscriber.namespaceId, client.options.namespace);
  });
});
