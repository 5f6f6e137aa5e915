import { readFileSync } from 'node:fs'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Closing } from './closing.ts'
import { watchCpu } from './cpu.ts'
import { figure, quantile, table } from './figures.ts'
import { postRequest, runLoad } from './load.ts'
import { residentBytes } from './memory.ts'
import { startHome } from './sides.ts'
import { makeVaults, startVaultService, type VaultService } from './vault-service.ts'

export interface StreamsPlan {
  readonly streams: number
  /** Over which the streams are spread; every event goes to all of them. */
  readonly vaults: number
  /** Events of each kind: emitted in the process that holds the streams, and in another. */
  readonly events: number
  readonly idleMs: number
}

export const fullStreams: StreamsPlan = { streams: 10_000, vaults: 1, events: 8, idleMs: 20_000 }
export const quickStreams: StreamsPlan = { streams: 1_000, vaults: 10, events: 3, idleMs: 3_000 }

const bytesPerStreamMax = 25_000
const p99MsMax = 1_000
const openingAtOnce = 100
const eventMsMax = 15_000
/** Code that the first streams make the process load and compile is not part of the cost of a stream. */
const warmingStreams = 200
const settlingMs = 2_000
/** Descriptors that a process needs beside its streams. */
const otherDescriptors = 500

/**
 * Opens many event streams at one process, and measures the memory per stream and the time of an event from the
 * emitter's request to the readers' sockets. Returns the number of streams without an event and of missed targets.
 */
export async function benchVaultStreams(plan: StreamsPlan, closing: Closing): Promise<number> {
  const home = await startHome()
  closing.add(() => home.stop())
  const holder = await startVaultService(home, closing)
  const other = await startVaultService(home, closing)
  const vaultIds = await makeVaults(holder, plan.vaults)
  const count = streamsWithin(plan)
  const warm = await openAll(holder, vaultIds, Math.min(warmingStreams, count))
  for (const stream of warm) stream.leave()
  await pause(settlingMs)

  const before = residentBytes(holder.child.pid)
  const bytesOfEach = () => (residentBytes(holder.child.pid) - before) / count
  const began = performance.now()
  const streams = await openAll(holder, vaultIds, count)
  const openMs = performance.now() - began
  const used = watchCpu(holder.watched)
  await pause(plan.idleMs)
  const rest = { bytes: bytesOfEach(), cores: coresOf(used().byName, plan.idleMs) }
  const near = await emitToAll(holder, { streams, vaultIds, events: plan.events })
  const far = await emitToAll(other, { streams, vaultIds, events: plan.events })
  const after = bytesOfEach()
  for (const stream of streams) stream.leave()

  console.log(
    `\nvault streams: ${count} open over ${plan.vaults} vaults in one process, opened in ${figure(openMs)} ms\n`,
  )
  console.log(tableOf({ 'from the same process': near, 'from another process': far }))
  console.log(
    `\n  ${figure(rest.bytes / 1_000)} kB per stream at rest, ${figure(after / 1_000)} kB after the events (RSS; at most ${bytesPerStreamMax / 1_000})`,
  )
  console.log(`  at rest, cores: ${rest.cores}`)
  return near.missing + far.missing + missedTargets([near, far], [rest.bytes, after])
}

/** The plan's streams, or as many as this machine lets a process hold; Node has raised its own limit to the hard one. */
function streamsWithin(plan: StreamsPlan): number {
  const line = /^Max open files +\d+ +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
  const limit = Number(line?.[1])
  if (!(limit - otherDescriptors < plan.streams)) return plan.streams
  const count = Math.max(1, limit - otherDescriptors)
  console.log(`a process may open ${limit} files here: ${count} streams in place of ${plan.streams}`)
  return count
}

function missedTargets(runs: readonly StreamDelivery[], bytesPerStream: readonly number[]): number {
  const late = runs.filter(({ ms }) => quantile(ms, 0.99) > p99MsMax).length
  const large = bytesPerStream.filter((bytes) => bytes > bytesPerStreamMax).length
  if (late > 0) console.log(`  MISSED: an event to all streams within ${p99MsMax} ms (p99)`)
  if (large > 0) console.log(`  MISSED: at most ${bytesPerStreamMax / 1_000} kB for each stream`)
  return late + large
}

function coresOf(usedMs: ReadonlyMap<string, number>, ms: number): string {
  return [...usedMs].map(([name, used]) => `${name} ${figure(used / ms)}`).join(', ')
}

function tableOf(runs: Readonly<Record<string, StreamDelivery>>): string {
  const rows = Object.entries(runs).map(([name, { ms, missing }]) => [
    name,
    ...[0.5, 0.99, 1].map((share) => figure(quantile(ms, share))),
    String(ms.length),
    String(missing),
  ])
  return table(['an event to all streams', 'p50 ms', 'p99 ms', 'last ms', 'delivered', 'missing'], rows)
}

interface StreamDelivery {
  /** Of each event at each stream. */
  readonly ms: readonly number[]
  readonly missing: number
}

/**
 * Emits one event after the other into every vault; the next one follows when all streams have received the previous
 * one, or after a timeout.
 */
async function emitToAll(
  { port, headers }: VaultService,
  runs: { readonly streams: readonly Stream[]; readonly vaultIds: readonly string[]; readonly events: number },
): Promise<StreamDelivery> {
  const ms: number[] = []
  let missing = 0
  for (let event = 0; event < runs.events; event++) {
    const body = JSON.stringify({ event: 'progress', payload: { done: event, of: runs.events } })
    const requests = runs.vaultIds.map((id) => postRequest(`/vaults/${id}/emit`, body, headers))
    const arrivals = runs.streams.map((stream) => stream.next(eventMsMax))
    const began = performance.now()
    const { responses } = await runLoad({
      port,
      connections: Math.min(8, requests.length),
      requests,
      msMax: eventMsMax,
    })
    missing += responses.filter(({ status }) => status !== 201).length
    for (const at of await Promise.all(arrivals)) {
      if (at === undefined) missing += 1
      else ms.push(at - began)
    }
  }
  return { ms, missing }
}

interface Stream {
  /** Resolves with the time of the next event, by `performance.now()`; with undefined if it does not come within `msMax`. */
  next(msMax: number): Promise<number | undefined>
  leave(): void
}

async function openAll(service: VaultService, vaultIds: readonly string[], count: number): Promise<Stream[]> {
  const wanted = Array.from({ length: count }, (_, index) => vaultIds[index % vaultIds.length] ?? '')
  const streams: Stream[] = []
  for (let from = 0; from < count; from += openingAtOnce) {
    const some = wanted.slice(from, from + openingAtOnce)
    streams.push(...(await Promise.all(some.map((id) => openOne(service, id)))))
  }
  return streams
}

const eventMark = Buffer.from('\ndata: ')

/** A minimal stream reader, because all readers share the machine with the service under test. */
async function openOne({ port, headers }: VaultService, vaultId: string): Promise<Stream> {
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
  socket.write(
    `GET /vaults/${vaultId}/events HTTP/1.1\r\nHost: bench\r\nAuthorization: ${headers.authorization}\r\n\r\n`,
  )
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
