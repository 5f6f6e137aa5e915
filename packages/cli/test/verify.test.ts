import { itemProof } from '@purser/sdk/seal'
import { expect, test } from 'vitest'
import {
  aSealer,
  manyItems,
  report,
  reportItem,
  type Sealer,
  sealedBy,
  song,
  songItem,
} from '../../sdk/test/seal-stage.ts'
import { aDirectory, offline, purser, ran } from './stage.ts'

const sealer = aSealer()

/** Files on disk: the proof of a vault, and the keys of who sealed it. */
function aProof(by: Sealer = sealer) {
  const { put } = aDirectory()
  const proof = sealedBy(by)
  return { put, proof, file: put('proof.json', proof), keys: put('jwks.json', by.jwks) }
}

test('a good proof is found good without any network, and ends with 0', async () => {
  const { file, keys, proof } = aProof()
  const { code, stdout, stderr } = await purser(['verify', file, '--keys', keys], offline)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^The proof is valid\.$/m)
  expect(stdout).toContain(`vault        ${proof.manifest.vaultId}\n`)
  expect(stdout).toContain(`signed with  did:web:pay.example.com#seal-1, a key of ${keys}\n`)
})

test('where there is no network, keys cannot be fetched: what is tested as offline is so', async () => {
  const { file } = aProof()
  const { code, stdout, stderr } = await purser(['verify', file, '--from', 'http://127.0.0.1:9'], offline)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain('The key set could not be fetched.')
})

test('a changed name ends with 1 and the fault, for people and for programs', async () => {
  const { put, keys, proof } = aProof()
  const items = [{ ...reportItem, name: 'Report' }, songItem]
  const forged = put('forged.json', { ...proof, manifest: { ...proof.manifest, items } })
  const people = await purser(['verify', forged, '--keys', keys])
  expect(people).toMatchObject({ code: 1, stdout: '' })
  expect(people.stderr).toMatch(/^The proof is invalid: merkle-root-differs\nAn item was changed/)
  const { code, stdout, stderr } = await purser(['verify', forged, '--keys', keys, '--format', 'json'])
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({
    ok: false,
    fault: 'merkle-root-differs',
    at: '',
    detail: 'An item was changed, added, dropped or moved since the vault was sealed.',
  })
})

test('a good proof as JSON says who signed what', async () => {
  const { file, keys } = aProof()
  const { stdout } = await purser(['verify', file, '--keys', keys, '--format', 'json'])
  expect(JSON.parse(stdout)).toEqual({ ok: true, kid: sealer.kid, statement: expect.objectContaining({ treeSize: 2 }) })
})

test('the keys of somebody else do not do, though the proof brings fitting ones along', async () => {
  const { put, file } = aProof()
  const others = [
    ['signature-invalid', put('same-name.json', aSealer().jwks)],
    ['key-unknown', put('other-name.json', aSealer('pay.example.com', 'seal-9').jwks)],
  ] as const
  for (const [fault, keys] of others) {
    const { code, stderr } = await ran(['verify', file, '--keys', keys])
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(fault) })
  }
})

test('a proof that is no JSON, no proof, or says a thing twice is malformed', async () => {
  const { put, keys, proof } = aProof()
  const twice = JSON.stringify(proof).replace('"summary":', '"summary":"All undone","summary":')
  for (const content of ['', '<html>', '[]', '{"item":1}', twice, Uint8Array.of(0xff)]) {
    const { code, stderr } = await ran(['verify', put('other.json', content), '--keys', keys])
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('proof-malformed') })
  }
})

test('a file of the vault is known again, and a truncated one refused', async () => {
  const { put, file, keys } = aProof()
  const args = (content: Uint8Array) =>
    ['verify', file, '--keys', keys, '--item', songItem.id, '--file', put('song', content)] as const
  const good = await purser([...args(song)], offline)
  expect(good).toMatchObject({ code: 0, stderr: '' })
  expect(good.stdout).toContain(`name         ${songItem.name}\n`)
  const { code, stderr } = await purser([...args(song.subarray(0, -1))])
  expect(code).toBe(1)
  expect(stderr).toContain('content-differs\nThe content has 199999 bytes; 200000 were sealed.')
})

test('a document is known again by its data, however the JSON is laid out', async () => {
  const { put, file, keys } = aProof()
  const layouts = [
    JSON.stringify(report),
    JSON.stringify(Object.fromEntries(Object.entries(report).reverse()), null, 4),
    '{"notes": ["f\\u00fcr alle", null], "currency": "USD", "total": 1.250e1}',
  ]
  for (const content of layouts) {
    const data = put('report.json', content)
    const { code } = await ran(['verify', file, '--keys', keys, '--item', reportItem.id, '--file', data])
    expect(code, content).toBe(0)
  }
})

test('other data than was sealed, or data that can be read two ways, is not the document', async () => {
  const { put, file, keys } = aProof()
  const total = JSON.stringify(report).replace('12.5', '12.6')
  const twice = JSON.stringify(report).replace('"total":', '"total":1,"total":')
  const record = { id: reportItem.id, data: report }
  for (const content of [total, twice, record, 'total: 12.5', '{"total":1e999}']) {
    const data = put('report.json', content)
    const { code, stderr } = await ran(['verify', file, '--keys', keys, '--item', reportItem.id, '--file', data])
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('content-differs') })
  }
})

test('the proof of one item is checked by itself, with its content and without', async () => {
  const { put, keys, proof } = aProof()
  const one = put('item.json', itemProof(proof, songItem.id))
  const content = put('song', song)
  const alone = await ran(['verify', one, '--keys', keys, '--format', 'json'])
  expect(JSON.parse(alone.stdout)).toMatchObject({ ok: true, item: songItem, contentChecked: false })
  const both = await ran(['verify', one, '--keys', keys, '--file', content, '--format', 'json'])
  expect(JSON.parse(both.stdout)).toMatchObject({ ok: true, item: songItem, contentChecked: true })
  const moved = put('moved.json', { ...itemProof(proof, songItem.id), index: 0 })
  expect(await ran(['verify', moved, '--keys', keys])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('not-included'),
  })
})

test('an item that the proof does not have is a no', async () => {
  const { put, keys, proof, file } = aProof()
  const one = put('item.json', itemProof(proof, songItem.id))
  for (const path of [file, one])
    expect(await ran(['verify', path, '--keys', keys, '--item', 'doc_99'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('item-unknown'),
    })
})

test('one item of 10,000 is checked', async () => {
  const { put } = aDirectory()
  const large = put('proof.json', sealedBy(sealer, [...manyItems(9_999), songItem]))
  const keys = put('jwks.json', sealer.jwks)
  const args = ['verify', large, '--keys', keys, '--item', songItem.id, '--file', put('song', song)]
  expect((await ran([...args, '--format', 'json'])).stdout).toContain('"treeSize": 10000')
})

test('a name in a proof cannot move the cursor, turn the text or break the line', async () => {
  const { put } = aDirectory()
  const name = 'song\u001b[2J\r\n\u202egpj.\u2028\u009b'
  const file = put('proof.json', sealedBy(sealer, [{ ...songItem, name }]))
  const args = ['verify', file, '--keys', put('jwks.json', sealer.jwks), '--item', songItem.id]
  const people = await ran(args)
  expect(people.stdout).toContain('song\\u001b[2J\\u000d\\u000a\\u202egpj.\\u2028\\u009b\n')
  const { stdout } = await ran([...args, '--format', 'json'])
  expect(stdout).not.toMatch(/[\p{Cf}\p{Zl}\u009b]/u)
  expect(JSON.parse(stdout)).toMatchObject({ item: { name } })
})
