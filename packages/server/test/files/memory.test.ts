import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { fetch as undiciFetch } from 'undici'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { endEveryService, serveEnv, spawnUntuned } from '../crash/service.ts'
import { foundOrganisation } from '../crash/stage.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { request } from '../world.ts'
import { startS3 } from './s3-server.ts'
import { boundary, formType } from './uploads.ts'

const mebibyte = 2 ** 20
const fileBytes = 256 * mebibyte
let database: TestDatabase
const stops: (() => Promise<void>)[] = []

afterEach(async () => {
  await endEveryService()
  for (const stop of stops.splice(0)) await stop()
  await database?.drop()
})

test.each([
  ['a disk', 48],
  ['an S3 server', 64],
])(
  'a file of 256 MB is uploaded to %s and downloaded through a server that uses less than %i MB more than when idle',
  { timeout: 180_000 },
  async (where, growthMax) => {
    database = await freshDatabase()
    const service = await spawnUntuned(serveEnv(database.url, where === 'a disk' ? {} : await s3Env())).up()
    const { testKey: key } = await foundOrganisation(database.url)
    const vault = await request(service.base, { key, method: 'POST', path: '/vaults', body: {} })
    const idle = rssOf(service.child.pid, 'VmRSS')
    forgetPeakOf(service.child.pid)
    const hash = createHash('sha256')
    const response = await undiciFetch(`${service.base}/vaults/${vault.body.id}/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': formType },
      body: formStream((chunk) => hash.update(chunk)),
      duplex: 'half',
    })
    const { id, size, sha256 } = z
      .object({ id: z.string(), size: z.number(), sha256: z.string() })
      .parse(await response.json())
    expect([response.status, size, sha256]).toEqual([201, fileBytes, hash.digest('hex')])

    const got = await undiciFetch(`${service.base}/vaults/${vault.body.id}/files/${id}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const gotHash = createHash('sha256')
    for await (const chunk of got.body ?? []) gotHash.update(chunk)
    expect(gotHash.digest('hex')).toBe(sha256)
    const peak = rssOf(service.child.pid, 'VmHWM')
    console.log(`${where}: ${Math.round(idle / mebibyte)} MB when idle, at most ${Math.round(peak / mebibyte)} MB`)
    expect(peak).toBeGreaterThan(idle)
    expect(peak - idle).toBeLessThan(growthMax * mebibyte)
  },
)

async function s3Env() {
  const { settings, stop } = await startS3()
  stops.push(stop)
  return {
    FILES_S3_ENDPOINT: settings.endpoint,
    FILES_S3_BUCKET: settings.bucket,
    FILES_S3_REGION: settings.region,
    FILES_S3_ACCESS_KEY_ID: settings.accessKeyId,
    FILES_S3_SECRET_ACCESS_KEY: settings.secretAccessKey,
  }
}

async function* formStream(seen: (chunk: Uint8Array) => void): AsyncGenerator<Uint8Array> {
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n`
  yield Buffer.from(head)
  for (let sent = 0; sent < fileBytes; sent += 65_536) {
    const chunk = Buffer.alloc(65_536, (sent / 65_536) % 251)
    seen(chunk)
    yield chunk
  }
  yield Buffer.from(`\r\n--${boundary}--\r\n`)
}

/** The resident memory of the process, or its peak, as Linux counts it. */
function rssOf(pid: number | undefined, field: 'VmRSS' | 'VmHWM'): number {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1]) * 1_024
}

/** Resets the peak: loading its code takes a process more memory than anything later. */
function forgetPeakOf(pid: number | undefined): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}
