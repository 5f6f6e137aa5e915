import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { endEveryService, serveEnv, spawnService } from '../crash/service.ts'
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

test.each(['a disk', 'an S3 server'])(
  'a file of 256 MB goes up to %s and comes down through a server that never holds 150 MB',
  { timeout: 60_000 },
  async (where) => {
    database = await freshDatabase()
    const service = await spawnService(serveEnv(database.url, where === 'a disk' ? {} : await s3Env())).up()
    const { testKey: key } = await foundOrganisation(database.url)
    const vault = await request(service.base, { key, method: 'POST', path: '/vaults', body: {} })
    const hash = createHash('sha256')
    const answer = await fetch(`${service.base}/vaults/${vault.body.id}/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': formType },
      body: formStream((chunk) => hash.update(chunk)),
      duplex: 'half',
    })
    const { id, size, sha256 } = z
      .object({ id: z.string(), size: z.number(), sha256: z.string() })
      .parse(await answer.json())
    expect([answer.status, size, sha256]).toEqual([201, fileBytes, hash.digest('hex')])

    const got = await fetch(`${service.base}/vaults/${vault.body.id}/files/${id}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const gotHash = createHash('sha256')
    for await (const chunk of got.body ?? []) gotHash.update(chunk)
    expect(gotHash.digest('hex')).toBe(sha256)
    const peak = peakBytesOf(service.child.pid)
    console.log(`${where}: at most ${Math.round(peak / mebibyte)} MB`)
    expect(peak).toBeLessThan(150 * mebibyte)
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

function formStream(seen: (chunk: Uint8Array) => void): ReadableStream<Uint8Array> {
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n`
  async function* pieces() {
    yield Buffer.from(head)
    for (let sent = 0; sent < fileBytes; sent += 65_536) {
      const chunk = Buffer.alloc(65_536, (sent / 65_536) % 251)
      seen(chunk)
      yield chunk
    }
    yield Buffer.from(`\r\n--${boundary}--\r\n`)
  }
  return ReadableStream.from(pieces())
}

/** The most that the process ever held, as Linux counts it. */
function peakBytesOf(pid: number | undefined): number {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1]) * 1_024
}
