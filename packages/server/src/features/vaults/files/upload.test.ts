import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { fetch as undiciFetch } from 'undici'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { aFileStage, content, type FileStage, mebibyte } from '../../../../test/files/file-stage.ts'
import { boundary, formOf, formType, hangingUpload } from '../../../../test/files/uploads.ts'
import { countersOf, hourMs } from '../../../../test/stories/vaults-stage.ts'
import { type Answer, codeOf, countByStatus, type Org } from '../../../../test/world.ts'
import { sql } from '../../../platform/db/db.ts'

let stage: FileStage

beforeAll(async () => {
  stage = await aFileStage()
})
afterAll(() => stage?.world.stop())

test.each([
  ['no name', { filename: undefined }],
  ['an empty name', { filename: '' }],
  ['a name of dots', { filename: 'a/..' }],
  ['a line end in its name', { filename: 'a%0d%0ab.txt' }],
  ['a tab in its name', { filename: 'a\tb.txt' }],
  ['a name of 10,000 characters', { filename: 'x'.repeat(10_000) }],
  ['another field', { field: 'attachment' }],
])('a form with %s is refused with its fault, and nothing is stored', async (_, part) => {
  const { send, state } = await stage.aVault()
  const refused = await send(part)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  expect(refused.body.errors).toEqual([
    { path: expect.stringMatching(/^\/(file|attachment)$/), message: expect.any(String) },
  ])
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
})

test('a form must hold one file and nothing else', async () => {
  const { sendRaw, state } = await stage.aVault()
  const file = { filename: 'a', content }
  for (const parts of [
    [file, file],
    [file, { field: 'note', content: 'x' }],
    [{ field: 'note', content: 'x' }, file],
    [],
  ]) {
    const refused = await sendRaw(formOf(...parts))
    expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  }
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
})

test('a body that is not a complete form is refused with its own error, and nothing is stored', async () => {
  const { sendRaw, state } = await stage.aVault()
  const whole = formOf({ filename: 'a', content })
  const cases: readonly (readonly [Uint8Array<ArrayBuffer>, string, number, string])[] = [
    [whole, 'application/json', 415, 'unsupported-media-type'],
    [whole, 'multipart/form-dataX; boundary=x', 415, 'unsupported-media-type'],
    [whole, 'multipart/form-data', 400, 'malformed-multipart'],
    [whole, `multipart/form-data; boundary=${'b'.repeat(100)}`, 400, 'malformed-multipart'],
    [whole, 'multipart/form-data; boundary=other', 400, 'malformed-multipart'],
    [whole.slice(0, -4), formType, 400, 'malformed-multipart'],
    [whole.slice(0, 5_000), formType, 400, 'malformed-multipart'],
    [whole.slice(0, 30), formType, 400, 'malformed-multipart'],
    [new Uint8Array(0), formType, 400, 'malformed-multipart'],
    [
      new Uint8Array(Buffer.from(Buffer.from(whole).toString('latin1').replace('form-data', 'attachment'), 'latin1')),
      formType,
      400,
      'malformed-multipart',
    ],
  ]
  for (const [body, type, status, code] of cases) {
    const refused = await sendRaw(body, { 'content-type': type })
    expect([refused.status, codeOf(refused)], `${type} ${body.length}`).toEqual([status, code])
  }
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
})

test('a Content-Digest of the file, of the whole body or of the part is verified; on a mismatch nothing is stored', async () => {
  const { org, send, sendRaw, state } = await stage.aVault()
  const field = (bytes: Uint8Array, name = 'sha256') =>
    `${name === 'sha256' ? 'sha-256' : 'sha-512'}=:${createHash(name).update(bytes).digest('base64')}:`
  const body = formOf({ filename: 'report.bin', content })
  for (const good of [field(content), field(body), field(content, 'sha512'), `${field(content)}, md5=:AAAA:`])
    expect((await send({}, { 'content-digest': good })).status, good).toBe(201)
  expect((await send({ headers: [`Content-Digest: ${field(content)}`] })).status).toBe(201)
  const before = await countersOf(stage.world, org)

  const other = field(randomBytes(8))
  const put = vi.spyOn(stage.world.server.deps.blobs, 'put')
  for (const refused of [
    await send({}, { 'content-digest': other }),
    await send({}, { 'content-digest': `${field(content)}, ${field(body, 'sha512')}` }),
    await send({ headers: [`Content-Digest: ${other}`] }),
    await send({ headers: [`Content-Digest: ${other}`] }, { 'content-digest': field(content) }),
  ])
    expect([refused.status, codeOf(refused)]).toEqual([422, 'digest-mismatch'])
  const ended = await Promise.allSettled(put.mock.results.map(({ value }) => value))
  expect(ended.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
  put.mockRestore()
  for (const refused of [
    await sendRaw(body, { 'content-digest': 'sha-256=x' }),
    await send({ headers: ['Content-Digest: x'] }),
  ])
    expect([refused.status, codeOf(refused), JSON.stringify(refused.body.errors)]).toEqual([
      422,
      'validation-error',
      expect.stringContaining('/Content-Digest'),
    ])
  expect((await state()).files).toHaveLength(5)
  expect(await countersOf(stage.world, org)).toEqual(before)
})

test('a file over the plan’s size is refused at once if it announces its length, otherwise while it is received', async () => {
  const { org, vaultId, state } = await stage.aVault('hobby')
  const most = 10 * mebibyte
  const exactly = await stage.sendTo(org, vaultId, formOf({ filename: 'a', content: Buffer.alloc(most) }))
  expect([exactly.status, exactly.body.size]).toEqual([201, most])
  const larger = formOf({ filename: 'a', content: Buffer.alloc(most + 1) })
  const much = formOf({ filename: 'a', content: Buffer.alloc(most + mebibyte) })
  for (const body of [larger, much]) {
    const refused = await stage.sendTo(org, vaultId, body)
    expect([refused.status, codeOf(refused), refused.body.limit]).toEqual([413, 'file-too-large', most])
  }
  const unannounced = await undiciFetch(`${stage.world.base}/vaults/${vaultId}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${org.testKey}`, 'content-type': formType },
    body: Readable.from([Buffer.from(much)]),
    duplex: 'half',
  })
  expect(unannounced.status).toBe(413)
  expect((await state()).files).toHaveLength(1)
})

test('files per vault and storage are limited with the plan’s limit error', async () => {
  const { org, vaultId, send } = await stage.aVault('hobby')
  const limited = (response: Answer) => [response.status, codeOf(response), response.body.limit, response.body.current]
  for (let count = 0; count < 5; count++) expect((await send({ content: 'x' })).status).toBe(201)
  const sixth = await send({ content: 'x' })
  expect(limited(sixth)).toEqual([422, 'files-per-vault-exceeded', 5, 5])
  expect(sixth.body).toMatchObject({
    title: 'Plan Limit Reached',
    upgradeUrl: 'http://dashboard.test/settings/billing',
  })

  const storage = 500 * mebibyte
  await fillStorage(org, storage - 10)
  const other = await stage.vault(org)
  expect(limited(await stage.sendTo(org, other, formOf({ filename: 'a', content: 'x'.repeat(11) })))).toEqual([
    429,
    'storage-quota-exceeded',
    storage,
    storage - 10,
  ])
  expect((await stage.sendTo(org, other, formOf({ filename: 'a', content: 'x'.repeat(10) }))).status).toBe(201)
  expect(limited(await stage.sendTo(org, other, formOf({ filename: 'a', content: 'x' })))).toEqual([
    429,
    'storage-quota-exceeded',
    storage,
    storage,
  ])
  expect((await stage.call(org, 'DELETE', `/vaults/${vaultId}`)).status).toBe(204)
})

/** Uses up storage as other vaults would. */
async function fillStorage(org: Org, used: number): Promise<void> {
  await stage.world.database.db.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used) values (${org.id}, 'test', 'storageBytes', 'all', ${used})
    on conflict (organisation_id, environment, kind, period) do update set used = excluded.used`)
}

test('of twenty parallel uploads as many are stored as fit, by number and by storage, and only they are counted', async () => {
  const byNumber = await stage.aVault('hobby')
  const answers = await Promise.all(Array.from({ length: 20 }, () => byNumber.send({ content: 'x'.repeat(1_000) })))
  expect(countByStatus(answers)).toEqual({ 201: 5, 422: 15 })
  expect((await byNumber.state()).files).toHaveLength(5)
  expect((await countersOf(stage.world, byNumber.org)).storageBytes).toBe(5_000)

  const byStorage = await stage.aVault('pro')
  const storage = 10 * 2 ** 30
  await fillStorage(byStorage.org, storage - 7_500)
  const others = await Promise.all(Array.from({ length: 20 }, () => byStorage.send({ content: 'x'.repeat(1_000) })))
  expect(countByStatus(others)).toEqual({ 201: 7, 429: 13 })
  expect((await byStorage.state()).files).toHaveLength(7)
  expect((await countersOf(stage.world, byStorage.org)).storageBytes).toBe(storage - 500)
  await stage.sweep()
  expect(await stage.store()).toMatchObject({ uploads: 0, deletions: 0 })
})

test('a vault that is sealed during an upload is sealed without the file', async () => {
  const { org, vaultId, state } = await stage.aVault()
  const body = formOf({ filename: 'late.bin', content })
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body }, 50_000)
  await expect.poll(async () => (await stage.store()).uploads).toBe(1)
  expect((await stage.call(org, 'POST', `/vaults/${vaultId}/seal`, {})).status).toBe(200)
  const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  socket.write(body.subarray(50_000))
  expect(await answered).toMatch(/^HTTP\/1\.1 409 .*vault-sealed/s)
  socket.destroy()
  expect(await state()).toMatchObject({ files: [], manifest: { items: [] } })
  expect((await countersOf(stage.world, org)).storageBytes).toBe(0)
  await stage.sweep()
  expect(await stage.store()).toMatchObject({ uploads: 0, deletions: 0 })
})

test('an interrupted upload leaves no file and no count, and the sweep removes what was received', async () => {
  const { org, vaultId, state } = await stage.aVault()
  await stage.sweep()
  const before = await stage.store()
  const body = formOf({ filename: 'half.bin', content: Buffer.alloc(4 * mebibyte) })
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body }, 2 * mebibyte)
  await expect.poll(async () => (await stage.store()).uploads).toBe(1)
  socket.destroy()
  await expect.poll(async () => (await stage.store()).uploads).toBe(0)
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
  expect((await countersOf(stage.world, org)).storageBytes).toBe(0)
  await stage.sweep()
  expect(await stage.store()).toEqual(before)
})

const upTo = (bytes: number, text: string) => text.repeat(Math.ceil(bytes / text.length))

test.each([
  ['empty parts', upTo(mebibyte, `--${boundary}\r\n`)],
  ['a preamble', upTo(mebibyte, 'preamble\r\n')],
  ['fields of a part', `--${boundary}${upTo(mebibyte, '\r\nA: b')}`],
  ['bytes after its end', `${Buffer.from(formOf({ filename: 'a', content: 'x' }))}${upTo(mebibyte, 'x')}`],
])('a form of %s without an end is refused while it arrives, and nothing is stored', async (_, endless) => {
  const { org, vaultId, state } = await stage.aVault()
  const sent = Buffer.from(endless)
  const body = new Uint8Array(8 * mebibyte)
  body.set(sent)
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body }, sent.length)
  const [response] = await once(socket, 'data')
  socket.destroy()
  expect(String(response)).toMatch(/^HTTP\/1\.1 400 .*malformed-multipart/s)
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
})

test('an upload whose key is revoked before its end adds no file', async () => {
  const { org, vaultId, state } = await stage.aVault()
  const keys = '/organisations/current/api-keys'
  const { body: made } = await stage.call(org, 'POST', keys, { name: 'CI', environment: 'test' })
  const body = formOf({ filename: 'late.bin', content })
  const socket = await hangingUpload(stage.world.base, { key: String(made.key), vaultId, body }, 50_000)
  await expect.poll(async () => (await stage.store()).uploads).toBe(1)
  expect((await stage.call(org, 'DELETE', `${keys}/${made.id}`)).status).toBe(204)
  const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  socket.write(body.subarray(50_000))
  expect(await answered).toMatch(/^HTTP\/1\.1 401 .*unauthorized/s)
  socket.destroy()
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
  expect((await stage.store()).uploads).toBe(0)
})

test('an upload that takes longer than an hour fails when more of it arrives, and nothing is stored', async () => {
  const { org, vaultId, state } = await stage.aVault()
  await stage.sweep()
  const before = await stage.store()
  const body = formOf({ filename: 'slow.bin', content })
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body }, 50_000)
  await expect.poll(async () => (await stage.store()).uploads).toBe(1)
  stage.pass(hourMs + 1)
  await stage.sweep()
  expect(await stage.store()).toEqual(before)
  const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  socket.write(body.subarray(50_000, 60_000))
  expect(await answered).toMatch(/^HTTP\/1\.1 408 .*request-timeout/s)
  socket.destroy()
  expect(await state()).toMatchObject({ files: [] })
  await stage.sweep()
  expect(await stage.store()).toEqual(before)
})

test('the files of a vault that is deleted or expires are deleted from the store', async () => {
  await stage.deleteContents()
  await stage.sweep()
  const before = await stage.store()
  const [one, two] = [await stage.aVault(), await stage.aVault()]
  await one.send()
  await two.send()
  expect((await stage.store()).blobs).toBe(before.blobs + 2)
  await stage.call(one.org, 'DELETE', `/vaults/${one.vaultId}`)
  await stage.deleteContents()
  await stage.sweep()
  expect((await stage.store()).blobs).toBe(before.blobs + 1)
  const short = await stage.vault(one.org, { ttl: '5m' })
  await stage.sendTo(one.org, short, formOf({ filename: 'a', content }))
  stage.pass(300_000)
  expect(codeOf(await stage.call(one.org, 'GET', `/vaults/${short}`))).toBe('vault-not-found')
  await stage.follow()
  await stage.deleteContents()
  await stage.sweep()
  expect(await stage.store()).toEqual({ ...before, blobs: before.blobs + 1 })
  expect((await countersOf(stage.world, one.org)).storageBytes).toBe(0)
})
