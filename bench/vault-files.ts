import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { startChild } from './children.ts'
import type { Closing } from './closing.ts'
import { type Watched, watchCpu } from './cpu.ts'
import { figure, median, sum, table } from './figures.ts'
import { residentBytes, watchPeak } from './memory.ts'
import { parseObject } from './parse.ts'
import { startHome } from './sides.ts'
import { type Content, createContent, download, upload } from './transfer.ts'
import { makeVaults, startVaultService, type VaultService } from './vault-service.ts'

export interface FilesPlan {
  /** Files that are measured one after the other. */
  readonly files: readonly { readonly mebibytes: number; readonly rounds: number }[]
}

export const fullFiles: FilesPlan = { files: [{ mebibytes: 256, rounds: 5 }] }
export const largeFiles: FilesPlan = { files: [...fullFiles.files, { mebibytes: 1_024, rounds: 3 }] }
export const quickFiles: FilesPlan = { files: [{ mebibytes: 256, rounds: 3 }] }

const mebibyte = 2 ** 20
const ratioMin = 0.6
const peakBytesMax = 150 * mebibyte
const warmingMebibytes = 32

/** The result of one transfer. */
interface Transfer {
  readonly ms: number
  readonly cpuMs: number
  /** Resident memory of its process before, and its peak meanwhile. */
  readonly idleBytes: number
  readonly peakBytes: number
  readonly coresElsewhere: number
  /** The fault of the response; undefined for a correct one. */
  readonly fault: string | undefined
}

type Outcome = Pick<Transfer, 'ms' | 'fault'>

interface Side {
  readonly name: string
  readonly service: Watched
  /** Uploads the content and remembers its path for `down`. */
  up(content: Content): Promise<Outcome>
  down(content: Content): Promise<Outcome>
}

/**
 * Compares uploads and downloads of large files with a bare `node:http` server that pipes to and from the same disk,
 * one transfer at a time, each byte of them checked. Returns the number of wrong transfers and missed targets: our
 * share of the bare server's rate, and our process's peak memory while it served.
 */
export async function benchVaultFiles(plan: FilesPlan, closing: Closing): Promise<number> {
  const home = await startHome()
  closing.add(() => home.stop())
  const service = await startVaultService(home, closing)
  const sides = [...(await startBare(path.join(home.directory, 'bare'), closing)), await ours(service)]
  const warming = createContent(warmingMebibytes * mebibyte)
  for (const side of sides) for (const way of ['up', 'down'] as const) await transfer(side, way, warming)
  let wrong = 0
  for (const { mebibytes, rounds } of plan.files) {
    const content = createContent(mebibytes * mebibyte)
    for (const way of ['up', 'down'] as const) wrong += await compare(way, { sides, content, rounds })
  }
  return wrong
}

interface Comparison {
  readonly sides: readonly Side[]
  readonly content: Content
  readonly rounds: number
}

async function compare(way: 'up' | 'down', { sides, content, rounds }: Comparison): Promise<number> {
  const found: Transfer[][] = sides.map(() => [])
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, side] of sides.entries()) found[index]?.push(await transfer(side, way, content))
  }
  const rates = found.map((transfers) => transfers.map(({ ms }) => content.bytes / mebibyte / (ms / 1_000)))
  const ratioOf = (index: number) =>
    median((rates[index] ?? []).map((rate, round) => rate / (rates[0]?.[round] ?? Number.NaN)))
  const rows = sides.map(({ name }, index) => [
    name,
    figure(median(rates[index] ?? [])),
    figure(ratioOf(index)),
    ...cellsOf(found[index] ?? [], content),
  ])
  const title = way === 'up' ? 'uploads' : 'downloads'
  console.log(`\nvault files: ${title} of ${content.bytes / mebibyte} MB, one at a time, ${rounds} rounds, medians\n`)
  console.log(table(['', 'MB/s', 'ratio', 'CPU ms/MB', 'MB before', 'MB peak', 'other cores', 'wrong'], rows))
  for (const { fault } of found.flat()) if (fault !== undefined) console.log(`  WRONG: ${fault}`)
  const faults = found.flat().filter(({ fault }) => fault !== undefined).length
  const last = sides.length - 1
  const peak = Math.max(...(found[last] ?? []).map(({ peakBytes }) => peakBytes))
  return faults + missedTargets(ratioOf(last), peak)
}

function missedTargets(ratio: number, peakBytes: number): number {
  const isSlow = !(ratio >= ratioMin)
  const isLarge = !(peakBytes < peakBytesMax)
  if (isSlow) console.log(`  MISSED: at least ${ratioMin} of the bare server's rate`)
  if (isLarge) console.log(`  MISSED: less than ${peakBytesMax / mebibyte} MB of memory`)
  return Number(isSlow) + Number(isLarge)
}

function cellsOf(transfers: readonly Transfer[], { bytes }: Content): string[] {
  return [
    figure(median(transfers.map(({ cpuMs }) => cpuMs)) / (bytes / mebibyte)),
    figure(median(transfers.map(({ idleBytes }) => idleBytes)) / mebibyte),
    figure(Math.max(...transfers.map(({ peakBytes }) => peakBytes)) / mebibyte),
    figure(median(transfers.map(({ coresElsewhere }) => coresElsewhere))),
    String(sum(transfers.map(({ fault }) => (fault === undefined ? 0 : 1)))),
  ]
}

/** Flushes what the previous side left to write, so that no side pays for the other's bytes. */
async function transfer(side: Side, way: 'up' | 'down', content: Content): Promise<Transfer> {
  await promisify(execFile)('sync')
  const used = watchCpu([side.service])
  const { pid, name } = side.service
  const idleBytes = residentBytes(pid)
  const peak = watchPeak(pid)
  const { ms, fault } = await side[way](content)
  const { byName, elsewhere } = used()
  const cpuMs = byName.get(name) ?? Number.NaN
  return { ms, cpuMs, idleBytes, peakBytes: peak(), coresElsewhere: elsewhere / ms, fault }
}

async function startBare(directory: string, closing: Closing): Promise<readonly Side[]> {
  mkdirSync(directory)
  const child = await startChild('bare-disk.ts', { BENCH_BARE_DIR: directory })
  closing.add(() => child.stop())
  const port = Number(child.ready('port'))
  const sideOf = (kind: 'plain' | 'flushed', name: string): Side => {
    let files = 0
    const target = { port, headers: {} }
    return {
      name,
      service: { name: 'service', pid: child.pid },
      async up(content) {
        files += 1
        const { status, ms } = await upload({ ...target, method: 'POST', path: `/${kind}/${files}` }, content)
        return { ms, fault: status === 201 ? undefined : `${name}: ${status}` }
      },
      down: (content) => downloaded({ ...target, path: `/${kind}/${files}` }, content),
    }
  }
  return [sideOf('plain', 'bare node:http'), sideOf('flushed', 'bare node:http, flushed to the disk')]
}

const boundary = 'purser-bench-boundary'
const form = {
  before: `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  after: `\r\n--${boundary}--\r\n`,
}

/** Our service: a form is read, the file hashed, flushed to the disk and committed before the response. */
async function ours(service: VaultService): Promise<Side> {
  const [vaultId] = await makeVaults(service, 1)
  const files = `/vaults/${vaultId}/files`
  const { port, headers } = service
  let fileId = ''
  return {
    name: 'Purser',
    service: { name: 'service', pid: service.child.pid },
    async up(content) {
      const type = { 'content-type': `multipart/form-data; boundary=${boundary}` }
      const target = { port, method: 'POST', path: files, headers: { ...headers, ...type } } as const
      const { status, body, ms } = await upload(target, content, form)
      const { id, size, sha256 } = parseObject(body)
      const isRight = status === 201 && typeof id === 'string' && size === content.bytes && sha256 === content.sha256
      fileId = String(id)
      return { ms, fault: isRight ? undefined : `Purser: ${status} ${body.slice(0, 300)}` }
    },
    down: (content) => downloaded({ port, headers, path: `${files}/${fileId}` }, content),
  }
}

async function downloaded(
  target: { readonly port: number; readonly path: string; readonly headers: Readonly<Record<string, string>> },
  content: Content,
): Promise<Outcome> {
  const { isRight, detail, ms } = await download({ ...target, method: 'GET' }, content)
  return { ms, fault: isRight ? undefined : `${target.path}: ${detail}` }
}
