import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { everySecret, found, type Secret } from './key-material.ts'

const organisationId = 'org_01h455vb4pex5vsknk084sn02q'
const directory = mkdtempSync(path.join(tmpdir(), 'no-trace-'))
const [keyFile, snapshot] = [path.join(directory, 'kek'), path.join(directory, 'heap.heapsnapshot')]

let database: TestDatabase
let serving: ChildProcessWithoutNullStreams
let output = ''
let secrets: readonly Secret[]
let canary: Secret

beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(sql`
    insert into organisations (id, name, type, plan, created_at)
    values (${organisationId}, 'Acme', 'team', 'hobby', now())`)
  const program = fileURLToPath(new URL('./serving.ts', import.meta.url))
  serving = spawn(process.execPath, [program, database.url, keyFile, organisationId, snapshot])
  for (const stream of [serving.stdout, serving.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  await says(/canary (\w{64})\n/)
  secrets = await everySecret(database.db, keyFile)
  const hex = /canary (\w{64})\n/.exec(output)?.[1] ?? ''
  canary = { name: 'canary', bytes: Buffer.from(hex, 'hex'), isKept: true }
})
afterAll(async () => {
  serving?.stdin.end('end\n')
  if (serving?.exitCode === null) await once(serving, 'exit')
  await database?.drop()
  rmSync(directory, { recursive: true, force: true })
})

/** Waits until the process has printed this. Throws when it ends first. */
function says(pattern: RegExp): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const look = (): void => {
    if (pattern.test(output)) resolve()
  }
  const ended = (): void => reject(new Error(`the process ended: ${output}`))
  serving.stdout.on('data', look)
  serving.once('exit', ended)
  look()
  return promise.finally(() => {
    serving.stdout.off('data', look)
    serving.off('exit', ended)
  })
}

test('every kind of secret is present to be found, and each would be recognized', () => {
  const names = secrets.map(({ name }) => name.replace(/-[0-9a-f]{16}/, ''))
  for (const name of [
    'key-encryption key',
    'settler',
    'wallet-seed',
    'master key',
    'key of child 39',
    'data key of seal',
  ])
    expect(names).toContain(name)
  for (const secret of secrets) {
    const { bytes } = secret
    const raw = Buffer.concat([Buffer.alloc(7), bytes, Buffer.alloc(9)])
    expect(found([secret], raw)).toEqual([`${secret.name} raw`])
    expect(found([secret], Buffer.from(`x${Buffer.from(bytes).toString('base64url')}`))).toContain(
      `${secret.name} in base64url`,
    )
  }
})

test.runIf(process.platform === 'linux')(
  'the whole memory of a process that has signed with them has no seed, no private key, no data key and no key-encryption key',
  () => {
    const memory = scan(serving.pid ?? 0, [...secrets.filter(({ isKept }) => !isKept), canary])
    expect(memory.bytes).toBeGreaterThan(20_000_000)
    expect([...memory.found]).toContain('canary raw')
    expect([...memory.found].filter((name) => !name.startsWith('canary'))).toEqual([])
  },
)

test('its JavaScript heap has none of them, nor any key that the process keeps', async () => {
  serving.stdin.write('snapshot\n')
  await says(/written .*\n/)
  const heap = readFileSync(snapshot)
  expect(heap.includes('wallet-seed')).toBe(true)
  expect(found(secrets, heap)).toEqual([])
})

test('nothing that it logged or printed, errors included, contains any of them', () => {
  expect(output.match(/as it should be/g)).toHaveLength(40)
  expect(output).toContain('does not match')
  expect(found(secrets, Buffer.from(output))).toEqual([])
})

test('a dump of the whole database contains none of them', async () => {
  const Table = z.object({ name: z.string() })
  const tables = await database.db.many(
    Table,
    sql`select table_name::text as name from information_schema.tables where table_schema = 'public'`,
  )
  expect(tables.length).toBeGreaterThan(20)
  const dump = []
  for (const { name } of tables) dump.push(await rowsOf(name))
  const whole = Buffer.concat(dump)
  expect(whole.includes('wallet-seed-')).toBe(true)
  expect(found(secrets, whole)).toEqual([])
})

/** A table as text, and all its byte values raw. */
async function rowsOf(table: string): Promise<Buffer> {
  const rows = await database.db.many(z.object({ json: z.string() }), {
    text: `select to_jsonb(t)::text as json from "${table}" t`,
    values: [],
  })
  const text = rows.map(({ json }) => json).join('\n')
  const bytes = [...text.matchAll(/\\\\x([0-9a-f]+)/g)].map(([, hex = '']) => Buffer.from(hex, 'hex'))
  return Buffer.concat([Buffer.from(text), ...bytes])
}

/** Scans every readable region of a process's memory, in pieces that overlap by more than any secret's length. */
function scan(pid: number, wanted: readonly Secret[]): { readonly bytes: number; readonly found: ReadonlySet<string> } {
  const seen = new Set<string>()
  const [piece, overlap] = [8 * 1024 * 1024, 256]
  const buffer = Buffer.alloc(piece + overlap)
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  let bytes = 0
  for (const [from, to] of stretches(pid)) {
    for (let at = from; at < to; at += piece) {
      const size = readPiece(memory, buffer, { at, length: Math.min(piece + overlap, to - at) })
      bytes += size
      for (const name of found(wanted, buffer.subarray(0, size))) seen.add(name)
    }
  }
  closeSync(memory)
  return { bytes, found: seen }
}

function stretches(pid: number): (readonly [number, number])[] {
  return (
    readFileSync(`/proc/${pid}/maps`, 'utf8')
      .split('\n')
      .map((line) => /^([0-9a-f]+)-([0-9a-f]+) r\S+ \S+ \S+ (\d+)\s*(.*)$/.exec(line))
      .filter((match) => match !== null)
      // Files and the kernel's own pages hold nothing of the process.
      .filter(([, , , inode, name]) => inode === '0' && !/^\[v(var|syscall|dso)/.test(name ?? ''))
      .map(([, from = '', to = '']) => [Number.parseInt(from, 16), Number.parseInt(to, 16)] as const)
  )
}

/** Reads as much as possible: a region may be reserved and not mapped. */
function readPiece(
  memory: number,
  buffer: Buffer,
  { at, length }: { readonly at: number; readonly length: number },
): number {
  try {
    return readSync(memory, buffer, 0, length, at)
  } catch {
    return 0
  }
}
