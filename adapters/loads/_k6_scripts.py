"""The scripts that k6 runs. SETTINGS stands for a literal that k6.py writes."""

_SUMMARY = """\
function counted(data, name) {
  return name in data.metrics ? data.metrics[name].values.count : 0;
}

function trend(data, name) {
  if (!(name in data.metrics)) return null;
  const { count, min, avg, max, ...rest } = data.metrics[name].values;
  return { count, min, avg, max, percentiles: settings.percentiles.map((key) => rest[key]) };
}

export function handleSummary(data) {
  const counts = { dropped: counted(data, 'dropped_iterations') };
  for (const kind of kinds) counts[kind] = counted(data, `tuner_${kind}`);
  const result = {
    durationMs: data.state.testRunDurationMs,
    counts,
    generatorFault: counted(data, 'tuner_own_fault') > 0 ? 'no local port or no open file was left' : null,
    bytes: counted(data, 'data_received'),
    latency: trend(data, latencyName),
    connect: trend(data, 'tuner_connect_time'),
  };
  return { stdout: `\\n${settings.marker}${JSON.stringify(result)}\\n` };
}
"""

HTTP = (
    """\
// Written by tuner.
import crypto from 'k6/crypto';
import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';

const settings = SETTINGS;
export const options = settings.options;

const kinds = ['correct', 'connect', 'read', 'write', 'timeout', 'status', 'length', 'other'];
const latencyName = 'tuner_latency';
const counters = {};
for (const kind of kinds) counters[kind] = new Counter(`tuner_${kind}`);
const ownFault = new Counter('tuner_own_fault');
const latency = new Trend(latencyName, true);
const connectTime = new Trend('tuner_connect_time', true);

// Codes: https://grafana.com/docs/k6/latest/javascript-api/error-codes/
function kindOf(response) {
  if (response.error_code === 1050) return 'timeout';
  if (response.error_code >= 1100 && response.error_code < 1200) return 'connect';
  if (response.error_code >= 1210 && response.error_code < 1220) return 'connect';
  if (response.error_code === 1201) return 'write';
  if (response.error_code >= 1200 && response.error_code < 1300) return 'read';
  if (/EOF|connection reset|connection was closed/.test(response.error)) return 'read';
  if (response.status === 0 || response.error_code === 1000) return 'other';
  if (response.status < 200 || response.status > 299) return 'status';
  return isRight(response.body) ? 'correct' : 'length';
}

function isRight(body) {
  // A text is looked into, anything else is only as long as its bytes.
  if (settings.contains !== '') return body !== null && body.includes(settings.contains);
  if (settings.sha256 !== '') return crypto.sha256(body === null ? '' : body, 'hex') === settings.sha256;
  const length = body === null ? 0 : body.byteLength;
  return settings.bodyBytes === null ? length >= settings.leastBytes : length === settings.bodyBytes;
}

export default function () {
  const responseType = settings.contains === '' ? 'binary' : 'text';
  const asked = { timeout: settings.timeout, responseType, redirects: 0, headers: settings.headers };
  const response = http.get(settings.url, asked);
  const kind = kindOf(response);
  counters[kind].add(1);
  if (kind === 'correct') latency.add(response.timings.duration);
  if (response.timings.connecting > 0) connectTime.add(response.timings.connecting);
  if (/too many open files|cannot assign requested address/.test(response.error)) ownFault.add(1);
}

"""
    + _SUMMARY
)

SCRIPTED = (
    """\
// Written by tuner; runs the script of the study.
import { Counter } from 'k6/metrics';
import iterate from './script.js';

const settings = SETTINGS;
export const options = settings.options;

const kinds = ['correct', 'other'];
const latencyName = 'iteration_duration';
const counters = {};
for (const kind of kinds) counters[kind] = new Counter(`tuner_${kind}`);

export default async function () {
  let outcome;
  try {
    const { url, connections, headers } = settings;
    outcome = await iterate({ url, connections, headers });
  } catch (error) {
    console.error(`tuner: the script threw: ${error}`);
    outcome = false;
  }
  counters[outcome === false ? 'other' : 'correct'].add(1);
}

"""
    + _SUMMARY
)
