// The native API over gRPC-Web on the HTTP port, as browsers and programs behind HTTP/1.1 proxies use it.
//
// Two stock clients: connect-web, which is what runs in browsers (here over the fetch of Node), and connect-node. Then the bytes
// themselves, for what those clients do not ask of a server: the text format, and what a browser asks before it calls.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcWebTransport as createNodeTransport } from '@connectrpc/connect-node';
import { createGrpcWebTransport as createWebTransport } from '@connectrpc/connect-web';
import { CatalogService } from '../generated/nomina/registry/v1/catalog_service_pb.js';
import {
  BeatResult, ListInstancesRequestSchema, ListInstancesResponseSchema, RegistryService,
} from '../generated/nomina/registry/v1/registry_service_pb.js';

assert.ok(process.env.NOMINA_HTTP, 'NOMINA_HTTP is not set: run this through tests/run');
const baseUrl = `http://${process.env.NOMINA_HTTP}`;
const REGISTRY = 'nomina.registry.v1.RegistryService';

const TRANSPORTS = {
  'connect-web': () => createWebTransport({ baseUrl }),
  'connect-node over HTTP/1.1': () => createNodeTransport({ baseUrl, httpVersion: '1.1' }),
  'connect-node over HTTP/2': () => createNodeTransport({ baseUrl, httpVersion: '2' }),
};

const unique = kind => `${kind}-${randomUUID().slice(0, 12)}`;
const serviceKey = () => ({ namespace: unique('ns'), service: unique('svc') });
const ports = instances => instances.map(instance => instance.port);
const timeout = { timeoutMs: 10_000 };

/** The error of a call that must fail. */
async function failure(call) {
  const error = await call.then(() => assert.fail('it succeeded'), ConnectError.from);
  return error;
}

for (const [name, transport] of Object.entries(TRANSPORTS)) {
  describe(name, () => {
    const registry = createClient(RegistryService, transport());
    const catalog = createClient(CatalogService, transport());

    test('the life of an instance', async () => {
      const service = serviceKey();
      const key = { ...service, ip: '10.1.2.3', port: 8080 };
      const metadata = { zone: 'a', text: '服务 🚀 1+1=2 & 100%' };
      const registered = await registry.registerInstance({ key, spec: { weight: 2.5, metadata } }, timeout);
      assert.equal(registered.instance.cluster, 'DEFAULT');
      assert.deepEqual(registered.instance.metadata, metadata);
      assert.ok(registered.revision > 0n);

      assert.equal((await registry.beat({ key }, timeout)).result, BeatResult.RENEWED);
      assert.equal((await registry.getInstance({ key }, timeout)).instance.weight, 2.5);
      assert.equal((await registry.updateInstance({ key, weight: 0 }, timeout)).instance.weight, 0);
      assert.deepEqual(ports((await registry.listInstances({ key: service }, timeout)).instances), [8080]);
      assert.equal((await catalog.getService({ key: service }, timeout)).service.instanceCount, 1n);

      await registry.deregisterInstance({ key }, timeout);
      assert.deepEqual((await registry.listInstances({ key: service }, timeout)).instances, []);
    });

    test('an error has its code, its message and its details', async () => {
      const key = { ...serviceKey(), ip: '10.1.2.3', port: 70000 };
      const refused = await failure(registry.registerInstance({ key }, timeout));
      assert.equal(refused.code, Code.InvalidArgument);
      assert.match(refused.rawMessage, /70000/);
      const details = Object.fromEntries(refused.details.map(({ type, value }) => [type, Buffer.from(value).toString('latin1')]));
      assert.match(details['google.rpc.BadRequest'], /key\.port/);
      assert.match(details['google.rpc.ErrorInfo'], /nomina/);

      const missing = await failure(registry.getInstance({ key: { ...key, port: 1 } }, timeout));
      assert.equal(missing.code, Code.NotFound);
    });

    test('a watch streams the state and the changes, each when it happens', async () => {
      const service = serviceKey();
      const key = port => ({ ...service, ip: '10.1.2.3', port });
      await registry.registerInstance({ key: key(1001) }, timeout);

      const abort = new AbortController();
      const watch = registry.watchService({ key: service }, { signal: abort.signal })[Symbol.asyncIterator]();
      const next = async () => {
        const stop = setTimeout(() => abort.abort(new Error('no message within 10 s')), 10_000);
        const { value, done } = await watch.next();
        clearTimeout(stop);
        assert.ok(!done, 'the stream ended');
        return value;
      };

      const full = await next();
      assert.equal(full.event.case, 'full');
      assert.deepEqual(ports(full.event.value.instances), [1001]);

      const { revision } = await registry.registerInstance({ key: key(1002) }, timeout);
      const added = await next();
      assert.equal(added.event.case, 'delta');
      assert.deepEqual(ports(added.event.value.upserts), [1002]);
      assert.equal(added.revision, revision);

      await registry.deregisterInstance({ key: key(1001) }, timeout);
      const removed = await next();
      assert.deepEqual(ports(removed.event.value.removals), [1001]);

      abort.abort();
      await assert.rejects(watch.next(), error => ConnectError.from(error).code === Code.Canceled);
    });

    test('a refused stream is an error', async () => {
      const read = async () => {
        for await (const _ of registry.watchService({}, timeout)) assert.fail('a message came');
      };
      assert.equal((await failure(read())).code, Code.InvalidArgument);
    });

    test('many calls at once are answered', async () => {
      const service = serviceKey();
      const wanted = Array.from({ length: 100 }, (_, index) => 2000 + index);
      await Promise.all(wanted.map(port => registry.registerInstance({ key: { ...service, ip: '10.1.2.3', port } }, timeout)));
      assert.deepEqual(ports((await registry.listInstances({ key: service }, timeout)).instances), wanted);
    });
  });
}

/** A message in its gRPC-Web frame. */
function frame(message) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The messages and the trailers of a gRPC-Web body. */
function unframe(body) {
  const messages = [];
  let trailers = {};
  while (body.length > 0) {
    const end = 5 + body.readUInt32BE(1);
    const payload = body.subarray(5, end);
    if (body[0] & 0x80) {
      const lines = payload.toString().split('\r\n').filter(Boolean);
      trailers = Object.fromEntries(lines.map(line => line.split(/:\s*/, 2)));
    } else {
      messages.push(payload);
    }
    body = body.subarray(end);
  }
  return { messages, trailers };
}

const post = (method, headers, body) => fetch(`${baseUrl}/${REGISTRY}/${method}`, { method: 'POST', headers, body });
const listRequest = () => frame(toBinary(ListInstancesRequestSchema, create(ListInstancesRequestSchema, { key: serviceKey() })));

describe('the bytes', () => {
  test('the binary format', async () => {
    const answer = await post('ListInstances', { 'content-type': 'application/grpc-web+proto', 'x-grpc-web': '1' }, listRequest());
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type'), /^application\/grpc-web/);
    const { messages, trailers } = unframe(Buffer.from(await answer.arrayBuffer()));
    assert.equal(messages.length, 1);
    assert.equal(trailers['grpc-status'], '0');
  });

  test('the text format', async () => {
    const headers = { 'content-type': 'application/grpc-web-text', accept: 'application/grpc-web-text' };
    const answer = await post('ListInstances', headers, listRequest().toString('base64'));
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type'), /^application\/grpc-web-text/);
    // The parts may each have been encoded by themselves.
    const parts = (await answer.text()).match(/[^=]+={0,2}/g);
    const { messages, trailers } = unframe(Buffer.concat(parts.map(part => Buffer.from(part, 'base64'))));
    assert.equal(fromBinary(ListInstancesResponseSchema, messages[0]).totalSize, 0n);
    assert.equal(trailers['grpc-status'], '0');
  });

  test('a broken frame is refused and the server lives on', async () => {
    const headers = { 'content-type': 'application/grpc-web+proto' };
    for (const body of [Buffer.from([0xff]), Buffer.from([0, 0, 0, 0, 9, 1]), frame(Buffer.from([0xff, 0xff]))]) {
      const answer = await post('ListInstances', headers, body);
      const { trailers } = unframe(Buffer.from(await answer.arrayBuffer()));
      const status = answer.headers.get('grpc-status') ?? trailers['grpc-status'];
      assert.ok(Number(status) > 0 || answer.status >= 400, `HTTP ${answer.status}, grpc-status ${status}`);
    }
    assert.equal((await post('ListInstances', headers, listRequest())).status, 200);
  });

  test('an unknown method is unimplemented', async () => {
    const answer = await post('Nonsense', { 'content-type': 'application/grpc-web+proto' }, listRequest());
    const { trailers } = unframe(Buffer.from(await answer.arrayBuffer()));
    assert.equal(answer.headers.get('grpc-status') ?? trailers['grpc-status'], '12');
  });

  test('a page of another origin may call and may read the outcome', async () => {
    const origin = 'http://console.example';
    const asked = await fetch(`${baseUrl}/${REGISTRY}/ListInstances`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,grpc-timeout,x-grpc-web,x-user-agent',
      },
    });
    assert.ok([200, 204].includes(asked.status), `preflight: ${asked.status}`);
    const words = (answer, name) => (answer.headers.get(name) ?? '').toLowerCase().split(/\s*,\s*/);
    assert.ok([origin, '*'].includes(asked.headers.get('access-control-allow-origin')));
    assert.ok(['post', '*'].some(method => words(asked, 'access-control-allow-methods').includes(method)));
    for (const header of ['content-type', 'grpc-timeout', 'x-grpc-web', 'x-user-agent']) {
      assert.ok([header, '*'].some(word => words(asked, 'access-control-allow-headers').includes(word)), header);
    }

    const answer = await post('ListInstances', { origin, 'content-type': 'application/grpc-web+proto' }, listRequest());
    assert.ok([origin, '*'].includes(answer.headers.get('access-control-allow-origin')));
    const exposed = words(answer, 'access-control-expose-headers');
    // With credentials the star is no wildcard.
    const wildcard = exposed.includes('*') && answer.headers.get('access-control-allow-credentials') !== 'true';
    for (const header of ['grpc-status', 'grpc-message', 'grpc-status-details-bin']) {
      assert.ok(wildcard || exposed.includes(header), `${header} is not exposed: ${exposed}`);
    }
  });
});
