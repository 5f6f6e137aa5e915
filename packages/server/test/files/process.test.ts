import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { openDiskBlobs } from '../../src/files/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'

const script = path.join(import.meta.dirname, 'child.ts')
const RoundTrip = z.object({
  size: z.number(),
  sha256: z.string(),
  read: z.number(),
  readSha256: z.string(),
  rssMax: z.number(),
})

let directory: string
let child: ChildProcess | undefined

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'purser-files-'))
})

afterEach(() => {
  child?.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})

function start(...args: readonly string[]) {
  const started = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  child = started
  return started
}

test('a process that stores and reads 256 MB never uses more than 150 MB', async () => {
  const megabytes256 = 256 * 1024 * 1024
  const { stdout } = start(script, 'round-trip', directory, String(megabytes256))
  const text = await textOf(stdout)
  const { size, sha256, read, readSha256, rssMax } = RoundTrip.parse(JSON.parse(text))
  expect({ size, read }).toEqual({ size: megabytes256, read: megabytes256 })
  expect(readSha256).toBe(sha256)
  expect(rssMax).toBeGreaterThan(20 * 1024 * 1024)
  expect(rssMax).toBeLessThan(150 * 1024 * 1024)
})

test('unread streams and stalled uploads do not end the process when they are collected', async () => {
  const started = start('--expose-gc', script, 'abandon', directory)
  const ended = once(started, 'close')
  expect(JSON.parse(await textOf(started.stdout))).toEqual({ collected: true })
  expect(await ended).toEqual([0, null])
})

test('an upload that dies with its process is never counted, and a sweep of another process removes it', async () => {
  const dying = start(script, 'hang', directory)
  await once(dying.stdout, 'data')
  const death = once(dying, 'close')
  dying.kill('SIGKILL')
  expect(await death).toEqual([null, 'SIGKILL'])
  expect(readdirSync(path.join(directory, 'partial'))).toHaveLength(1)

  const blobs = await openDiskBlobs({ directory, clock: systemClock, random: systemRandom })
  const inAnHour = new Date(systemClock.now().getTime() + 3_600_000)
  for await (const keys of blobs.list(inAnHour)) expect(keys).toEqual([])
  expect(await blobs.discardPartial(inAnHour)).toBe(1)
  expect(readdirSync(directory, { recursive: true }).sort()).toEqual(['blobs', 'partial'])
})

async function textOf(stream: Readable): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}
