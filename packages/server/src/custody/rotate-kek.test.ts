import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../test/database.ts'
import { steadyWitness } from '../../test/steady-witness.ts'
import { createSignatures } from '../chain/signatures/signatures.ts'
import { systemClock } from '../platform/clock.ts'
import type { Tenant } from '../platform/ctx.ts'
import { sql } from '../platform/db/db.ts'
import { createLog } from '../platform/log.ts'
import { createOutbound } from '../platform/outbound.ts'
import { systemRandom } from '../platform/random.ts'
import { type Custody, openCustody, rotateKek } from './index.ts'
import { createKeyRing, type KeyEncryption, type KeyRing } from './key-encryption.ts'
import { localKeyEncryption } from './key-sources.ts'

const organisations = Array.from({ length: 12 }, (_, index) => `org_01h455vb4pex5vsknk084sn0${10 + index}` as const)
const tenants: readonly Tenant[] = organisations.map((organisationId) => ({ organisationId, environment: 'live' }))
const acme = tenants[0] ?? { organisationId: 'org_none', environment: 'live' as const }

let database: TestDatabase
let first: Uint8Array
let second: Uint8Array

beforeEach(async () => {
  database = await freshDatabase()
  first = randomBytes(32)
  second = randomBytes(32)
  for (const id of organisations)
    await database.db.run(sql`
      insert into organisations (id, name, type, plan, created_at) values (${id}, 'Acme', 'team', 'hobby', now())`)
})
afterEach(() => database.drop())

const base64 = (key: Uint8Array) => ({ base64: Buffer.from(key).toString('base64') })
const local = (key: Uint8Array) => localKeyEncryption(() => Uint8Array.from(key), systemRandom)

/** A process configured with these keys. */
async function aProcess(...[own, ...also]: readonly [Uint8Array, ...Uint8Array[]]): Promise<Custody> {
  return openCustody({
    witness: steadyWitness,
    db: database.db,
    clock: systemClock,
    random: systemRandom,
    log: createLog({ level: 'silent' }),
    outbound: createOutbound(),
    signatures: await createSignatures(),
    keys: { first: base64(own), also: also.map(base64) },
    createIfMissing: false,
    mppChallengeSeconds: 300,
  })
}

function rotate(ring: KeyRing = createKeyRing(local(second), [local(first)])) {
  const floor = { db: database.db, clock: systemClock, random: systemRandom }
  return rotateKek({ ...floor, ring, actor: { kind: 'operator' }, requestId: 'req_01h455vb4pex5vsknk084sn02q' })
}

const Under = z.object({ fingerprint: z.string(), rows: z.bigint() })

async function under(): Promise<Record<string, number>> {
  const rows = await database.db.many(
    Under,
    sql`select fingerprint, count(*) as rows from
      (select fingerprint from sealed_keys union all select fingerprint from wallet_seeds) t group by fingerprint`,
  )
  return Object.fromEntries(rows.map(({ fingerprint, rows: count }) => [fingerprint, Number(count)]))
}

async function accounts({ walletKeys }: Custody): Promise<string[]> {
  const nodes = await Promise.all(tenants.map((tenant) => walletKeys.accountNode(tenant, 0)))
  return nodes.map(({ publicKey }) => Buffer.from(publicKey).toString('hex'))
}

test('after a rotation everything is under the new key, the secrets are unchanged, and the old key is no longer needed', async () => {
  const before = await aProcess(first)
  const known = await accounts(before)
  const sealed = before.sealer.seal(Buffer.from('secret'), 'place')
  expect(await rotate()).toEqual({
    current: local(second).fingerprint,
    rewrapped: { 'service keys': 7, 'wallet seeds': tenants.length },
    failed: [],
  })
  expect(await under()).toEqual({ [local(second).fingerprint]: 7 + tenants.length })
  const after = await aProcess(second)
  expect(await accounts(after)).toEqual(known)
  expect(after.settler.address).toBe(before.settler.address)
  expect(after.settlementTokens.mint('pay_1')).toBe(before.settlementTokens.mint('pay_1'))
  expect(Buffer.from(after.sealer.open(sealed, 'place')).toString()).toBe('secret')
  await expect(aProcess(first)).rejects.toThrow(/is not the one that this database was sealed with/)
})

test('a process with both keys keeps working during a rotation, and then seals with the new key', async () => {
  const serving = await aProcess(first, second)
  const known = await accounts(serving)
  const address = (await import('@purser/protocol')).hdChildAddress
  const signatures = await createSignatures()
  const node = await serving.walletKeys.accountNode(acme, 0)
  const signer = serving.walletKeys.signer(acme, { account: 0, index: 0, address: address(node, 0, signatures) })
  let done = false
  const work = (async () => {
    let turns = 0
    while (!done || turns < 20) {
      await serving.settler.signTransaction(fields)
      await signer.signTransaction(fields)
      expect(await accounts(serving)).toEqual(known)
      turns += 1
    }
    return turns
  })()
  await rotate()
  done = true
  expect(await work).toBeGreaterThanOrEqual(20)
  await serving.walletKeys.accountNode({ ...acme, environment: 'test' }, 0)
  expect(Object.keys(await under())).toEqual([local(second).fingerprint])
})

test('a rotation that is interrupted after any row is finished by the next one', async () => {
  const known = await accounts(await aProcess(first))
  const rows = 7 + tenants.length
  for (let killedAfter = 0; killedAfter < rows; killedAfter += 3) {
    const [from, to] = killedAfter % 2 === 0 ? [first, second] : [second, first]
    await expect(rotate(createKeyRing(dyingAfter(local(to), killedAfter), [local(from)]))).rejects.toThrow('killed')
    const both = await aProcess(from, to)
    expect(await accounts(both)).toEqual(known)
    expect((await rotate(createKeyRing(local(to), [local(from)]))).failed).toEqual([])
    expect(await under()).toEqual({ [local(to).fingerprint]: rows })
    expect(await accounts(await aProcess(to))).toEqual(known)
  }
})

test('during a rotation, a process without either key does not start', async () => {
  await accounts(await aProcess(first))
  await expect(rotate(createKeyRing(dyingAfter(local(second), 4), [local(first)]))).rejects.toThrow('killed')
  await expect(aProcess(first)).rejects.toThrow(local(second).fingerprint)
  await expect(aProcess(second)).rejects.toThrow(local(first).fingerprint)
})

test('concurrent rotations are harmless', async () => {
  const known = await accounts(await aProcess(first))
  const both = await Promise.all([rotate(), rotate()])
  expect(both.flatMap(({ failed }) => failed)).toEqual([])
  expect(await accounts(await aProcess(second))).toEqual(known)
})

test('seeds that are created during a rotation are under the new key afterwards', async () => {
  const serving = await aProcess(first, second)
  const requested = tenants.map((tenant) => serving.walletKeys.accountNode(tenant, 0))
  await Promise.all([rotate(), ...requested])
  expect(await under()).toEqual({ [local(second).fingerprint]: 7 + tenants.length })
})

test('a data key that does not open is reported and left unchanged, and all others are rewrapped', async () => {
  await accounts(await aProcess(first))
  await database.db.run(sql`
    update wallet_seeds set wrapped_data_key = set_byte(wrapped_data_key, 20, (get_byte(wrapped_data_key, 20) + 1) % 256)
    where organisation_id = ${acme.organisationId}`)
  const { failed, rewrapped } = await rotate()
  expect(failed).toEqual([{ row: expect.stringMatching(/^wallet-seed-/), reason: expect.any(String) }])
  expect(rewrapped).toEqual({ 'service keys': 7, 'wallet seeds': tenants.length - 1 })
  expect((await under())[local(first).fingerprint]).toBe(1)
})

test('a new key that does not unwrap its own output changes nothing', async () => {
  const known = await accounts(await aProcess(first))
  const liar: KeyEncryption = { ...local(second), unwrap: async () => new Uint8Array(32) }
  await expect(rotate(createKeyRing(liar, [local(first)]))).rejects.toThrow('does not unwrap')
  expect(await under()).toEqual({ [local(first).fingerprint]: 7 + tenants.length })
  expect(await accounts(await aProcess(first))).toEqual(known)
})

test('a rotation without the old key, or with another, changes nothing', async () => {
  await accounts(await aProcess(first))
  await expect(rotate(createKeyRing(local(second)))).rejects.toThrow(/is not the one/)
  await expect(rotate(createKeyRing(local(second), [local(randomBytes(32))]))).rejects.toThrow(/is not the one/)
  expect(Object.keys(await under())).toEqual([local(first).fingerprint])
})

const fields = {
  chainId: 84_532,
  nonce: 7n,
  maxPriorityFeePerGas: 1n,
  maxFeePerGas: 2n,
  gasLimit: 90_000n,
  to: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  value: 0n,
  data: '0x',
} as const

/** A key whose process crashes after `rows` wraps. The first wrap of a rotation is its probe. */
function dyingAfter(key: KeyEncryption, rows: number): KeyEncryption {
  let left = rows + 1
  return {
    ...key,
    wrap(dataKey, associatedData) {
      if (left === 0) throw new Killed()
      left -= 1
      return key.wrap(dataKey, associatedData)
    },
  }
}

class Killed extends Error {
  override readonly message = 'killed'
}
