import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import type { RawResponse } from '../call.ts'
import { referencePages } from './reference-pages.ts'

const script = 'console.log("the reference")'
const directory = mkdtempSync(path.join(os.tmpdir(), 'purser-reference-'))
mkdirSync(path.join(directory, 'assets'))
writeFileSync(path.join(directory, 'index.html'), '<!doctype html><title>Reference</title>')
writeFileSync(path.join(directory, 'assets', 'start-1a2b.js.br'), brotliCompressSync(script))
writeFileSync(path.join(directory, 'assets', 'start-1a2b.js.gz'), gzipSync(script))
writeFileSync(path.join(directory, 'secret.js.gz'), gzipSync('a secret'))
writeFileSync(path.join(directory, 'secret.js.br'), brotliCompressSync('a secret'))
const missing: RawResponse = { status: 404, headers: {}, body: '' }

afterAll(() => rmSync(directory, { recursive: true }))

async function get(
  { at, file = '' }: { readonly at: string; readonly file?: string },
  headers: Record<string, string> = {},
  directories = [directory],
): Promise<RawResponse> {
  const found = referencePages(() => missing, directories).find((one) => one.path === at)
  if (found === undefined) throw new Error(`no page ${at}`)
  return found.respond({ file }, { method: 'GET', url: at, headers, body: new Uint8Array(), address: '127.0.0.1' })
}

const asset = (file: string) => ({ at: '/docs/reference/assets/:file', file })

function bytesOf({ body }: RawResponse): Uint8Array {
  if (!(body instanceof Uint8Array)) throw new Error('these are not bytes')
  return body
}

test('scripts come from files of the service alone, and the page sends nothing elsewhere and is in no frame', async () => {
  const { status, headers, body } = await get({ at: '/docs/reference' })
  expect([status, String(body)]).toEqual([200, '<!doctype html><title>Reference</title>'])
  const policy = new Map(
    String(headers['content-security-policy'])
      .split('; ')
      .map((directive) => [directive.split(' ')[0], directive.split(' ').slice(1).join(' ')]),
  )
  expect(Object.fromEntries(policy)).toMatchObject({
    'default-src': "'none'",
    'script-src': "'self'",
    'connect-src': "'self'",
    'frame-ancestors': "'none'",
    'form-action': "'none'",
  })
  expect(String(headers['content-security-policy'])).not.toMatch(/unsafe-eval|https?:|\*/)
})

test('a file is sent as the build compressed it, and unpacked for a client without encodings', async () => {
  const packed = await get(asset('start-1a2b.js'), { 'accept-encoding': 'gzip, br' })
  expect(packed.headers).toMatchObject({
    'content-encoding': 'br',
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
  })
  expect(String(brotliDecompressSync(bytesOf(packed)))).toBe(script)
  const zipped = await get(asset('start-1a2b.js'), { 'accept-encoding': 'gzip, br;q=0' })
  expect(zipped.headers['content-encoding']).toBe('gzip')
  expect(String(gunzipSync(bytesOf(zipped)))).toBe(script)
  const plain = await get(asset('start-1a2b.js'))
  expect(plain.headers['content-encoding']).toBeUndefined()
  expect(Buffer.from(bytesOf(plain)).toString()).toBe(script)
})

test('a file that the build has not is 404, and no name leads out of the assets', async () => {
  for (const name of ['start-old.js', '../secret.js', '..\\secret.js', 'start-1a2b.js.br', '.', '', '\0'])
    expect([name, (await get(asset(name))).status]).toEqual([name, 404])
})

test('without a build the reference without scripts takes its place', async () => {
  expect(await get({ at: '/docs/reference' }, {}, ['/nowhere'])).toMatchObject({
    status: 302,
    headers: { location: '/docs/reference/plain' },
  })
  expect((await get(asset('start-1a2b.js'), {}, ['/nowhere'])).status).toBe(404)
})
