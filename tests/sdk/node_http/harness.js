// Clients of npm `nacos-naming` whose traffic can be seen, and truths read past the SDK.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { after } from 'node:test';
import naming from 'nacos-naming';
import urllib from 'urllib';

export const HTTP = process.env.NOMINA_HTTP;
assert.ok(HTTP, 'NOMINA_HTTP is not set: run this through tests/run');

// Far above what anything here needs on a loaded machine of two cores; only a failure ever waits that long.
const DEADLINE = 15_000;
// The SDK sends its first beat up to 10 s after the client was made.
export const FIRST_BEAT = 25_000;

export const unique = kind => `${kind}-${randomUUID().slice(0, 12)}`;

/** Calls `read` until `accept` takes its value, and returns that value; fails with the last value after `deadline` ms. */
export async function until(read, accept, what, deadline = DEADLINE) {
  const end = performance.now() + deadline;
  for (;;) {
    const value = await read();
    if (accept(value)) return value;
    if (performance.now() >= end) assert.fail(`not within ${deadline} ms: ${what}; the last value: ${JSON.stringify(value)}`);
    await pause(25);
  }
}

/** Calls `read` for `duration` ms and fails at the first value that `accept` does not take. */
export async function holds(read, accept, what, duration) {
  const start = performance.now();
  while (performance.now() - start < duration) {
    const value = await read();
    assert.ok(accept(value), `broken after ${Math.round(performance.now() - start)} ms: ${what}; the value: ${JSON.stringify(value)}`);
    await pause(50);
  }
}

const clients = [];
after(async () => {
  await Promise.all(clients.map(client => client.close()));
});

/**
 * A ready client, with
 * `requests`: what it has sent, in order;
 * `datagrams`: the raw UDP messages that it has received, in order;
 * `faults`: what it has complained about.
 */
export async function connect(options = {}) {
  const requests = [];
  const datagrams = [];
  const faults = [];
  const complain = (...words) => faults.push(words.map(String).join(' '));
  const client = new naming.NacosNamingClient({
    serverList: HTTP,
    namespace: unique('ns'),
    logger: { debug() {}, info() {}, warn: complain, error: complain },
    httpclient: {
      async request(url, request) {
        const sent = { method: request.method, path: new URL(url).pathname, data: { ...request.data }, open: true };
        requests.push(sent);
        try {
          return await urllib.request(url, request);
        } finally {
          sent.open = false;
        }
      },
    },
    ...options,
  });
  client.on('error', complain);
  client._hostReactor.on('error', complain);
  client._hostReactor._pushReceiver.on('error', complain);
  await client.ready();
  client._hostReactor._pushReceiver._server.on('message', message => datagrams.push(message));
  clients.push(client);
  return Object.assign(client, { requests, datagrams, faults });
}

const polled = (client, service) =>
  client.requests.filter(({ path, data }) => path.endsWith('/instance/list') && data.serviceName.endsWith(`@@${service}`));

/** How often a client has asked for the list of a service. */
export const polls = (client, service) => polled(client, service).length;

/** Subscribes, and returns the states of which the listener was told: each a map of `ip:port` to host. */
export function subscribe(client, info) {
  const told = [];
  client.subscribe(info, hosts => told.push(Object.fromEntries(hosts.map(host => [`${host.ip}:${host.port}`, host]))));
  return told;
}

/** Waits until the SDK rests between two polls: it polls when it subscribes, 1 s later, and then each cacheMillis. */
export const atRest = (client, service, subscriptions = 1) =>
  until(
    () => polled(client, service).filter(({ open }) => !open).length,
    answered => answered >= 2 * subscriptions,
    'the SDK has polled twice',
  );

/**
 * Makes a change while the client is at rest, and waits until the listener is told a state that `accept` takes. Fails if the
 * client polled in between: then it was not the push that brought it.
 */
export async function byPush(client, service, told, change, accept, what) {
  const before = polls(client, service);
  const heard = told.length;
  await change();
  await until(() => told.slice(heard), states => states.some(accept), `${what}, by push`);
  assert.equal(polls(client, service), before, `${what}: a poll brought it, not a push`);
}

async function call(method, path, parameters) {
  const url = new URL(`http://${HTTP}/nacos/v1/ns${path}`);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const answer = await fetch(url, { method });
  const body = await answer.text();
  assert.equal(answer.status, 200, `${method} ${url}: ${body}`);
  return body;
}

/** The server itself, seen without the SDK, in the namespace of a client. */
export const direct = ({ options: { namespace } }) => ({
  async list(serviceName, parameters = {}) {
    return JSON.parse(await call('GET', '/instance/list', { namespaceId: namespace, serviceName, ...parameters })).hosts;
  },
  register: (serviceName, parameters) => call('POST', '/instance', { namespaceId: namespace, serviceName, ...parameters }),
  update: (serviceName, parameters) => call('PUT', '/instance', { namespaceId: namespace, serviceName, ...parameters }),
  deregister: (serviceName, parameters) => call('DELETE', '/instance', { namespaceId: namespace, serviceName, ...parameters }),
  async subscribers(serviceName) {
    return JSON.parse(await call('GET', '/service/subscribers', { namespaceId: namespace, serviceName })).subscribers;
  },
  pushState: async () => JSON.parse(await call('GET', '/operator/push/state', {})),
});

/** Metadata that turn an instance's times down, in milliseconds. */
export const lease = (interval, timeout, remove) => ({
  'preserved.heart.beat.interval': `${interval}`,
  'preserved.heart.beat.timeout': `${timeout}`,
  'preserved.ip.delete.timeout': `${remove}`,
});
