import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, test } from 'vitest'
import { endEveryService, serveEnv, spawnService } from './crash/service.ts'
import { foundOrganisation } from './crash/stage.ts'
import { freshDatabase } from './database.ts'
import { request } from './world.ts'
import { boundary, formType } from './files/uploads.ts'
afterEach(() => endEveryService())
test('m', async () => {
  const database = await freshDatabase()
  const service = await spawnService(serveEnv(database.url, process.env.NODE_OPT ? { NODE_OPTIONS: process.env.NODE_OPT } : {})).up()
  const mem = (what) => { const t = readFileSync(`/proc/${service.child.pid}/status`, 'utf8'); console.log(what, /VmHWM:\s+(\d+)/.exec(t)[1] / 1024 | 0, /VmRSS:\s+(\d+)/.exec(t)[1] / 1024 | 0, /RssAnon:\s+(\d+)/.exec(t)[1] / 1024 | 0) ; writeFileSync(`/proc/${service.child.pid}/clear_refs`, '5') }
  mem('up')
  const { testKey: key } = await foundOrganisation(database.url)
  const vault = await request(service.base, { key, method: 'POST', path: '/vaults', body: {} })
  mem('vault')
  for (let i = 0; i < 2; i++) {
  async function* pieces() {
    yield Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n`)
    for (let sent = 0; sent < 256 * 2**20; sent += 65536) yield Buffer.alloc(65536, 1)
    yield Buffer.from(`\r\n--${boundary}--\r\n`)
  }
  let t = performance.now()
  const a = await fetch(`${service.base}/vaults/${vault.body.id}/files`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': formType }, body: ReadableStream.from(pieces()), duplex: 'half' })
  const b = await a.json()
  mem('uploaded ' + a.status + ' ' + Math.round(256000 / (performance.now() - t)) + ' MB/s')
  t = performance.now()
  const got = await fetch(`${service.base}/vaults/${vault.body.id}/files/${b.id}`, { headers: { authorization: `Bearer ${key}` } })
  let n = 0; for await (const c of got.body) n += c.length
  mem('downloaded ' + n + ' ' + Math.round(256000 / (performance.now() - t)) + ' MB/s')
  }
}, 60000)
