import { readFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Child, startChild } from './children.ts'
import type { Closing } from './closing.ts'
import { watchCpu } from './cpu.ts'
import { figure, quantile, table } from './figures.ts'
import { postRequest, runLoad } from './load.ts'
import { parseObject } from './parse.ts'
import { type Home, startHome } from './sides.ts'

export interface StreamsPlan {
  readonly streams: number
  /** Over which the streams are spread; every event goes to all of them. */
  readonly vaults: number
  /** Events of each kind: emitted in the process that holds the streams, and in another. */
  readonly events: number
  readonly idleMs: number
}

export const fullStreams: StreamsPlan = { streams: 10_000, vaults: 1, events: 8, idleMs: 20_000 }
export const quickStreams: StreamsPlan = { streams: 1_000, vaults: 1, events: 3, idleMs: 3_000 }

const bytesPerStreamMax = 25_000
const p99MsMax = 1_000
const openingAtOnce = 100
const eventMsMax = 15_000
/** No chain is asked anything here. */
const noChain = 'http://127.0.0.1:9'

interface Service {
  readonly child: Child
  readonly port: number
}

/**
 * Opens many event streams at one process, and measures what each costs it in memory and how long an event takes to all of
 * them, from the emitter's request to the reader's socket. Answers how many of these were wrong: streams that lack an
 * event, and targets that were missed.
 */
export async function benchVaultStreams(plan: StreamsPlan, closing: Closing): Promise<number> {
  const home = await startHome()
  closing.add(() => home.stop())
  const holder = await startService(home, closing)
  const other = await startService(home, closing)
  const vaultIds = await makeVaults(holder, home, plan.vaults)

  // What the first streams make the process load and compile is not what a stream costs.
  const warm = await openAll(
    holder,
    home,
    Array.from({ length: 200 }, (_, index) => vaultIds[index % vaultIds.length] ?? ''),
  )
  for (const stream of warm) stream.leave()
  await pause(2_000)

  const before = residentBytes(holder.child.pid)
  const began = performance.now()
  const streams = await openAll(
    holder,
    home,
    Array.from({ length: plan.streams }, (_, index) => vaultIds[index % vaultIds.length] ?? ''),
  )
  const openMs = performance.now() - began
  const used = watchCpu([
    { name: 'service', pid: holder.child.pid },
    { name: 'PostgreSQL', pid: home.postgres.pid, tree: true },
  ])
  await pause(plan.idleMs)
  const idle = used()
  const bytesPerStream = (residentBytes(holder.child.pid) - before) / plan.streams

  const near = await tellAll(holder, home, { streams, vaultIds, events: plan.events })
  const far = await tellAll(other, home, { streams, vaultIds, events: plan.events })
  const peak = (residentBytes(holder.child.pid) - before) / plan.streams
  for (const stream of streams) stream.leave()

  console.log(
    `\nvault streams: ${plan.streams} open over ${plan.vaults} vaults in one process, opened in ${figure(openMs)} ms\n`,
  )
  const rows = (
    [
      ['from the same process', near],
      ['from another process', far],
    ] as const
  ).map(([name, told]) => [
    name,
    ...[0.5, 0.99, 1].map((share) => figure(quantile(told.ms, share))),
    String(told.ms.length),
    String(told.missing),
  ])
  console.log(table(['an event to all streams', 'p50 ms', 'p99 ms', 'last ms', 'told', 'missing'], rows))
  const cores = (name: string) => figure((idle.byName.get(name) ?? 0) / plan.idleMs)
  console.log(
    `\n  ${figure(bytesPerStream / 1_000)} kB per stream at rest, ${figure(peak / 1_000)} kB after the events (RSS)`,
  )
  console.log(`  at rest: ${cores('service')} cores of the service, ${cores('PostgreSQL')} of PostgreSQL`)
  const late = [near, far].filter(({ ms }) => quantile(ms, 0.99) > p99MsMax).length
  return near.missing + far.missing + late + (bytesPerStream > bytesPerStreamMax ? 1 : 0)
}

async function startService(home: Home, closing: Closing): Promise<Service> {
  const child = await startChild('purser-service.ts', {
    BENCH_RPC_URL: noChain,
    BENCH_DATABASE_URL: home.postgres.url,
    BENCH_KEY_FILE: path.join(home.directory, 'key-encryption-key'),
    BENCH_SEED: home.apiKey === undefined ? 'yes' : 'no',
  })
  closing.add(() => child.stop())
  home.apiKey ??= child.ready('apiKey')
  return { child, port: Number(child.ready('port')) }
}

function headersOf(home: Home): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${home.apiKey}` }
}

async function makeVaults({ port }: Service, home: Home, count: number): Promise<string[]> {
  const request = postRequest('/vaults', JSON.stringify({ ttl: '24h' }), headersOf(home))
  const requests = Array.from({ length: count }, () => request)
  const { answers } = await runLoad({ port, connections: 8, requests, msMax: 60_000 })
  return answers.map(({ status, body }) => {
    const { id } = parseObject(body)
    if (typeof id !== 'string') throw new Error(`no vault: ${status} ${body}`)
    return id
  })
}

function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1]) * 1_024
}

interface StreamsTold {
  /** Of each event at each stream. */
  readonly ms: readonly number[]
  readonly missing: number
}

/** Emits events one after the other into every vault, each once all streams have the one before, or too late for that. */
async function tellAll(
  { port }: Service,
  home: Home,
  told: { readonly streams: readonly Stream[]; readonly vaultIds: readonly string[]; readonly events: number },
): Promise<StreamsTold> {
  const ms: number[] = []
  let missing = 0
  for (let event = 0; event < told.events; event++) {
    const body = JSON.stringify({ event: 'progress', payload: { done: event, of: told.events } })
    const requests = told.vaultIds.map((id) => postRequest(`/vaults/${id}/emit`, body, headersOf(home)))
    const arrivals = told.streams.map((stream) => stream.next(eventMsMax))
    const began = performance.now()
    const { answers } = await runLoad({ port, connections: Math.min(8, requests.length), requests, msMax: eventMsMax })
    missing += answers.filter(({ status }) => status !== 201).length
    for (const at of await Promise.all(arrivals)) {
      if (at === undefined) missing += 1
      else ms.push(at - began)
    }
  }
  return { ms, missing }
}

interface Stream {
  /** When the next event comes; undefined if it does not come in time. */
  next(msMax: number): Promise<number | undefined>
  leave(): void
}

async function openAll({ port }: Service, home: Home, vaultIds: readonly string[]): Promise<Stream[]> {
  const streams: Stream[] = []
  for (let from = 0; from < vaultIds.length; from += openingAtOnce)
    streams.push(
      ...(await Promise.all(vaultIds.slice(from, from + openingAtOnce).map((id) => openOne(port, home, id)))),
    )
  return streams
}

const eventMark = Buffer.from('\ndata: ')

/** A reader as lean as can be, since all of them share the machine with what they measure. */
async function openOne(port: number, home: Home, vaultId: string): Promise<Stream> {
  const socket = net.connect(port, '127.0.0.1')
  let come = (_at: number): void => undefined
  const opened = new Promise<void>((resolve, reject) => {
    socket.once('error', reject).once('close', () => reject(new Error('a stream was closed')))
    socket.once('data', (head: Buffer) => {
      if (head.includes('HTTP/1.1 200 ')) resolve()
      else reject(new Error(`no stream: ${head}`))
    })
  })
  socket.on('data', (chunk: Buffer) => {
    if (chunk.includes(eventMark)) come(performance.now())
  })
  socket.write(`GET /vaults/${vaultId}/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${home.apiKey}\r\n\r\n`)
  await opened
  return {
    next: (msMax) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => resolve(undefined), msMax)
        come = (at) => {
          clearTimeout(timer)
          resolve(at)
        }
      }),
    leave: () => socket.destroy(),
  }
}
