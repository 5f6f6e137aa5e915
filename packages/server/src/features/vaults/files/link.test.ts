import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formOf, upload } from '../../../../test/files/uploads.ts'
import { aVaultStage, type VaultStage } from '../../../../test/stories/vaults-stage.ts'
import { codeOf, type Org, parseAnswer } from '../../../../test/world.ts'
import { VaultFile } from '../schema.ts'

let stage: VaultStage
let org: Org
let vaultId: string
const content = randomBytes(1_000)

beforeAll(async () => {
  stage = await aVaultStage()
  org = await stage.world.organisation()
  vaultId = await stage.vault(org)
})
afterAll(() => stage?.world.stop())

/** A new file's link, as the process under test returns it. */
async function aLink(vault = vaultId): Promise<URL> {
  const body = formOf({ filename: 'a.bin', content })
  const added = await upload(stage.world.base, { key: org.testKey, vaultId: vault, body })
  return here(String(added.body.url))
}

function here(url: string): URL {
  return new URL(url.replace('http://purser.test', stage.world.base))
}

const statusOf = async (url: URL) => (await fetch(url)).status

test('a link in a vault’s record opens its file without a header, including ranges', async () => {
  const link = await aLink()
  const whole = await fetch(link)
  expect([whole.status, Buffer.from(await whole.arrayBuffer()).equals(content)]).toEqual([200, true])
  expect((await fetch(link, { headers: { range: 'bytes=0-9' } })).status).toBe(206)
  const { body } = await stage.call(org, 'GET', `/vaults/${vaultId}`)
  const [file] = Array.isArray(body.files) ? body.files : []
  expect(await statusOf(here(file.url))).toBe(200)
})

test('a link is good until its vault expires, of a persisted one for a day, and not for a moment longer', async () => {
  const short = await aLink(await stage.vault(org, { ttl: '30m' }))
  stage.pass(1_799_000)
  expect(await statusOf(short)).toBe(200)
  stage.pass(1_000)
  expect(await statusOf(short)).toBe(401)
  const kept = await stage.vault(org)
  await stage.call(org, 'POST', `/vaults/${kept}/persist`, {})
  const link = await aLink(kept)
  stage.pass(86_399_000)
  expect(await statusOf(link)).toBe(200)
  stage.pass(1_000)
  const late = await parseAnswer(await fetch(link))
  expect([late.status, codeOf(late)]).toEqual([401, 'unauthorized'])
  expect(late.body.detail).toMatch(/^API key is invalid or missing: the link has expired/)
  expect(VaultFile.shape.url.meta()?.description).toContain(
    'until the vault expires, or for 24 hours if it is persisted',
  )
  vaultId = await stage.vault(org)
})

test('a link ends with the key that read it, and with the token', async () => {
  const made = await stage.call(org, 'POST', '/organisations/current/api-keys', { name: 'x', environment: 'test' })
  const added = await upload(stage.world.base, {
    key: String(made.body.key),
    vaultId,
    body: formOf({ filename: 'a.bin', content }),
  })
  const ofKey = here(String(added.body.url))
  const { body: token } = await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, {})
  const { files } = (await stage.world.call(String(token.token), 'GET', `/vaults/${vaultId}`)).body
  const ofToken = here(String(Array.isArray(files) && files[0].url))
  const ofOther = await aLink()
  const statuses = async () => [await statusOf(ofKey), await statusOf(ofToken), await statusOf(ofOther)]
  expect(await statuses()).toEqual([200, 200, 200])
  const changed = new URL(ofKey)
  changed.searchParams.set('by', String(ofOther.searchParams.get('by')))
  expect(await statusOf(changed)).toBe(401)
  await stage.call(org, 'DELETE', `/organisations/current/api-keys/${made.body.id}`)
  await stage.call(org, 'DELETE', `/vaults/${vaultId}/tokens/${token.id}`)
  expect(await statuses()).toEqual([401, 401, 200])
})

test('a link that was changed in any part, or is for another file or vault, is 401', async () => {
  const [link, other] = [await aLink(), await aLink()]
  const changed = (change: (url: URL) => void): URL => {
    const url = new URL(link)
    change(url)
    return url
  }
  const signature = String(link.searchParams.get('signature'))
  const cases = [
    changed((url) => url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 1))),
    changed((url) => url.searchParams.set('expires', '999999999999')),
    changed((url) => url.searchParams.set('expires', `0${url.searchParams.get('expires')}`)),
    changed((url) => url.searchParams.set('expires', '')),
    changed((url) =>
      url.searchParams.set(
        'signature',
        signature.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
      ),
    ),
    changed((url) => url.searchParams.set('signature', signature.slice(0, -1))),
    changed((url) => url.searchParams.set('signature', '')),
    changed((url) => url.searchParams.delete('signature')),
    changed((url) => url.searchParams.delete('expires')),
    changed((url) => url.searchParams.append('signature', signature)),
    changed((url) => {
      url.pathname = other.pathname
    }),
    changed((url) => {
      url.pathname = url.pathname.replace(vaultId, 'vlt_01h455vb4pex5vsknk084sn02q')
    }),
  ]
  for (const url of cases) expect(await statusOf(url), url.search).toBe(401)
})

test('a link only reads its own file', async () => {
  const link = await aLink()
  for (const [method, path] of [
    ['DELETE', link.pathname],
    ['POST', `/vaults/${vaultId}/files`],
    ['GET', `/vaults/${vaultId}`],
    ['GET', '/vaults'],
  ])
    expect((await fetch(`${stage.world.base}${path}${link.search}`, { method: method ?? '' })).status).toBe(401)
  expect(await statusOf(link)).toBe(200)
})

test('a link to a file that was deleted, or whose vault was, opens nothing', async () => {
  const [link, vault] = [await aLink(), await stage.vault(org)]
  const doomed = await aLink(vault)
  await stage.call(org, 'DELETE', link.pathname)
  await stage.call(org, 'DELETE', `/vaults/${vault}`)
  expect([await statusOf(link), await statusOf(doomed)]).toEqual([404, 404])
})

test('a link that a vault token read ends with the token, and one that a key read does not', async () => {
  await aLink()
  const path = `/vaults/${vaultId}/tokens`
  const token = String((await stage.call(org, 'POST', path, { expiresIn: 60 })).body.token)
  const linkOf = async (key: string): Promise<URL> => {
    const { files } = (await stage.world.call(key, 'GET', `/vaults/${vaultId}`)).body
    const [file] = Array.isArray(files) ? files : []
    return here(String(file.url))
  }
  const [ofToken, ofKey] = [await linkOf(token), await linkOf(org.testKey)]
  stage.pass(59_000)
  expect([await statusOf(ofToken), await statusOf(ofKey)]).toEqual([200, 200])
  stage.pass(1_000)
  expect([await statusOf(ofToken), await statusOf(ofKey)]).toEqual([401, 200])
})
