import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { whyNotDeclared } from '../../../../test/declared.ts'
import { aFileStage, bytesOf, content, type FileStage, sha256 } from '../../../../test/files/file-stage.ts'
import { formOf, upload } from '../../../../test/files/uploads.ts'
import { countersOf, streamOf } from '../../../../test/stories/vaults-stage.ts'
import { codeOf } from '../../../../test/world.ts'
import { vaultFileOperations } from './index.ts'

let stage: FileStage

beforeAll(async () => {
  stage = await aFileStage()
})
afterAll(() => stage?.world.stop())

test('a file is stored and downloaded byte for byte, with its record, its event and its bytes counted', async () => {
  const { org, vaultId, send, state } = await stage.aVault()
  const added = await send({ filename: 'Zürich 東京.pdf', type: 'application/pdf' })
  expect(added.status).toBe(201)
  expect(added.body).toEqual({
    id: expect.stringMatching(/^fil_[0-9a-z]{26}$/),
    name: 'Zürich 東京.pdf',
    mimeType: 'application/pdf',
    size: content.length,
    sha256,
    url: expect.stringContaining(`http://purser.test/vaults/${vaultId}/files/`),
    createdAt: stage.now().toISOString(),
  })
  expect(await state()).toMatchObject({ files: [{ ...added.body, url: expect.any(String) }], eventCount: 2 })
  const { id: fileId, name, mimeType, size } = added.body
  expect((await streamOf(stage.world, vaultId)).at(-1)?.event).toMatchObject({
    type: 'file.added',
    payload: { fileId, name, mimeType, size, sha256 },
  })
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: content.length })
  const got = await stage.download(org, vaultId, fileId)
  expect(got.status).toBe(200)
  expect((await bytesOf(got)).equals(content)).toBe(true)
})

test('a file is sent as an attachment that no browser displays or sniffs, with its tag and its digests', async () => {
  const { org, vaultId, send } = await stage.aVault()
  const { body } = await send({ filename: 'x%22.html', type: 'text/html; charset=utf-8' })
  const { headers } = await stage.download(org, vaultId, body.id)
  const digest = `sha-256=:${createHash('sha256').update(content).digest('base64')}:`
  expect(Object.fromEntries(headers)).toMatchObject({
    'content-type': 'text/html',
    'content-length': String(content.length),
    'content-disposition': `attachment; filename="x_.html"; filename*=UTF-8''x%22.html`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'cache-control': 'private, no-cache',
    'accept-ranges': 'bytes',
    etag: `"${sha256}"`,
    'content-digest': digest,
    'repr-digest': digest,
    'x-request-id': expect.stringMatching(/^req_/),
  })
})

test('a requested range is sent, the whole file if If-Range names another content, and nothing to a caller that has it', async () => {
  const { org, vaultId, send } = await stage.aVault()
  const { body } = await send()
  const get = (headers: Record<string, string>) => stage.download(org, vaultId, body.id, headers)
  const cases = [
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=99990-', 99_990, 100_000],
    ['bytes=-5', 99_995, 100_000],
    ['bytes=99999-200000', 99_999, 100_000],
  ] as const
  for (const [range, from, to] of cases) {
    const part = await get({ range, 'if-range': `"${sha256}"` })
    expect([part.status, part.headers.get('content-range'), part.headers.get('content-length')]).toEqual([
      206,
      `bytes ${from}-${to - 1}/100000`,
      String(to - from),
    ])
    expect(part.headers.get('content-digest')).toBeNull()
    expect((await bytesOf(part)).equals(content.subarray(from, to))).toBe(true)
  }
  const old = await get({ range: 'bytes=0-0', 'if-range': `"${'0'.repeat(64)}"` })
  expect([old.status, (await bytesOf(old)).length]).toEqual([200, content.length])
  const nonsense = await get({ range: 'bytes=z' })
  expect([nonsense.status, (await bytesOf(nonsense)).length]).toEqual([200, content.length])
  const known = await get({ 'if-none-match': `"${sha256}"` })
  expect([known.status, known.headers.get('etag'), (await bytesOf(known)).length]).toEqual([304, `"${sha256}"`, 0])
  const outside = await get({ range: 'bytes=100000-' })
  expect([outside.status, outside.headers.get('content-range')]).toEqual([416, 'bytes */100000'])
  expect(await outside.json()).toMatchObject({
    type: 'http://purser.test/problems/range-not-satisfiable',
    size: 100_000,
  })
})

test('the responses of a download are those of the API’s description', async () => {
  const { org, vaultId, send } = await stage.aVault()
  const { body } = await send()
  const operation = vaultFileOperations.find(({ id }) => id === 'vaults.files.get')
  if (operation === undefined) throw new Error('no such operation')
  const requested = [{}, { range: 'bytes=0-9' }, { 'if-none-match': `"${sha256}"` }, { range: 'bytes=100000-' }]
  const statuses = []
  for (const headers of requested) {
    const response = await stage.download(org, vaultId, body.id, headers)
    const text = await response.text()
    expect(whyNotDeclared(operation, { status: response.status, headers: response.headers, text })).toBeUndefined()
    statuses.push(response.status)
  }
  expect(statuses).toEqual([200, 206, 304, 416])
})

test('an empty file is a file', async () => {
  const { org, vaultId, send } = await stage.aVault()
  const { status, body } = await send({ content: '' })
  expect([status, body.size]).toEqual([201, 0])
  expect((await bytesOf(await stage.download(org, vaultId, body.id))).length).toBe(0)
  expect((await stage.download(org, vaultId, body.id, { range: 'bytes=0-0' })).status).toBe(416)
})

test.each([
  ['../../../etc/passwd', 'passwd'],
  ['C:\\\\Users\\\\me\\\\a.txt', 'a.txt'],
  ['say %22hi%22.txt', 'say "hi".txt'],
  ['say \\"hi\\".txt', 'say "hi".txt'],
  ['100%25.txt', '100%25.txt'],
  ['a;b=c, d.txt', 'a;b=c, d.txt'],
  ['\u202egnp.exe', '\u202egnp.exe'],
])('a form that names its file %j gives a file called %j', async (filename, name) => {
  const { send } = await stage.aVault()
  expect((await send({ filename })).body.name).toBe(name)
})

test('deleting a file deletes its bytes, reports an event and frees its storage; deleting it again is 404', async () => {
  const { org, vaultId, send, state } = await stage.aVault()
  const { body } = await send()
  await stage.sweep()
  const before = await stage.store()
  const path = `/vaults/${vaultId}/files/${body.id}`
  expect((await stage.call(org, 'DELETE', path)).status).toBe(204)
  for (const method of ['GET', 'DELETE']) expect(codeOf(await stage.call(org, method, path))).toBe('file-not-found')
  expect(await state()).toMatchObject({ files: [], eventCount: 3 })
  expect((await streamOf(stage.world, vaultId)).at(-1)?.event).toMatchObject({
    type: 'file.deleted',
    payload: { fileId: body.id, name: 'report.bin' },
  })
  expect((await countersOf(stage.world, org)).storageBytes).toBe(0)
  await stage.sweep()
  expect(await stage.store()).toEqual({ ...before, blobs: before.blobs - 1 })
})

test('a sealed vault accepts no file and loses none, and its files can be read', async () => {
  const { org, vaultId, send, state } = await stage.aVault()
  const { body } = await send()
  expect((await stage.call(org, 'POST', `/vaults/${vaultId}/seal`, {})).status).toBe(200)
  const { id, name, mimeType, size } = body
  expect(await state()).toMatchObject({ manifest: { items: [{ kind: 'file', id, name, mimeType, size, sha256 }] } })
  const deleted = await stage.call(org, 'DELETE', `/vaults/${vaultId}/files/${body.id}`)
  for (const refused of [await send(), deleted])
    expect([refused.status, codeOf(refused)]).toEqual([409, 'vault-sealed'])
  expect((await bytesOf(await stage.download(org, vaultId, body.id))).equals(content)).toBe(true)
})

test('another organisation’s vault and file are answered as if they did not exist', async () => {
  const { org, vaultId, send } = await stage.aVault()
  const { body } = await send()
  const [other, own] = [await stage.world.organisation(), await stage.aVault()]
  const places = [
    [other, vaultId, body.id],
    [other, 'vlt_01h455vb4pex5vsknk084sn02q', body.id],
  ] as const
  for (const [who, where, file] of places) {
    expect(codeOf(await stage.sendTo(who, where, formOf({ filename: 'a', content })))).toBe('vault-not-found')
    for (const method of ['GET', 'DELETE'])
      expect(codeOf(await stage.call(who, method, `/vaults/${where}/files/${file}`))).toBe('vault-not-found')
  }
  expect(codeOf(await stage.call(own.org, 'GET', `/vaults/${own.vaultId}/files/${body.id}`))).toBe('file-not-found')
  const live = await upload(stage.world.base, { key: org.liveKey, vaultId, body: formOf({ filename: 'a', content }) })
  expect(codeOf(live)).toBe('vault-not-found')
})

test('a zip bomb is stored as plain bytes', async () => {
  const { org, vaultId, send } = await stage.aVault()
  const bomb = Buffer.from('504b0304', 'hex')
  const { body } = await send({ filename: 'bomb.zip', type: 'application/zip', content: bomb })
  expect(body).toMatchObject({ size: 4, mimeType: 'application/zip' })
  expect((await bytesOf(await stage.download(org, vaultId, body.id))).equals(bomb)).toBe(true)
})
