import { type DevChain, sendFromDevAccount, startChain } from '@purser/devnet'
import { encodeTransferWithAuthorization } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { withdrawSettlement } from '../../src/features/payments/facilitator/settle.ts'
import { voidUnsettled } from '../../src/features/payments/index.ts'
import { passRelays } from '../../src/features/relayer/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { id } from '../../src/platform/ids.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { relayPartsOf } from '../relay-stage.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { network } from '../wallet-payment-stage.ts'
import { aPayer, aWorld, codeOf, type Org, type V2Payload, type World } from '../world.ts'

/** A process that only serves requests: the tests run the chain reads themselves. */
let chain: DevChain
let world: World
let org: Org
let screening: FakeScreening

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  screening = createFakeScreening(() => new Date())
  world = await aWorld({ chains: [chain], config: { role: 'api', settleWaitMs: 50 }, boot: { screening } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const Hexadecimal = z.templateLiteral(['0x', z.string()])
const Signed = z.object({
  from: Hexadecimal,
  to: Hexadecimal,
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: Hexadecimal,
})

interface Verified {
  readonly paymentId: string
  readonly payer: `0x${string}`
  readonly settle: () => ReturnType<World['call']>
  /** What anybody can send to the token, for 30 days. */
  readonly call: `0x${string}`
}

async function verified(): Promise<Verified> {
  const { id: walletId } = await world.wallet(org)
  const priced = { walletId, resource: 'https://api.example.com/weather', price: '1' }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', priced)
  let call: Verified['call'] = '0x'
  const after = ({ payload: { authorization, signature } }: V2Payload): void => {
    const { value, validAfter, validBefore, ...parties } = Signed.parse(authorization)
    const numbers = { value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) }
    call = encodeTransferWithAuthorization(
      { ...parties, ...numbers },
      { kind: 'bytes', signature: Hexadecimal.parse(signature) },
    )
  }
  const payer = await aPayer(chain)
  const validBefore = String(Math.floor(Date.now() / 1_000) + 30 * 86_400)
  const credential = await payer.credential(challenge, { sign: { validBefore }, after })
  const { body } = await world.call(org.testKey, 'POST', '/payments/verify', {
    protocol: 'x402',
    credential,
    ...priced,
  })
  const settling = { paymentId: body.paymentId, settlementToken: body.settlementToken }
  const settle = () => world.call(org.testKey, 'POST', '/payments/settle', settling)
  return { paymentId: String(body.paymentId), payer: payer.account.address, settle, call }
}

async function statusOf({ paymentId }: Verified): Promise<unknown> {
  return (await world.call(org.testKey, 'GET', `/payments/${paymentId}`)).body.status
}

/** Lets two days pass for a payment that ended, and reads the chain for it. */
async function lookAfterTwoDays({ paymentId }: Verified): Promise<void> {
  await world.database.db.run(sql`
    update relays set created_at = created_at - interval '2 days', check_at = now() - interval '1 second'
    where subject_id = ${paymentId} and check_at is not null`)
  await passRelays(relayPartsOf(world.server.deps), network)
}

const ends: readonly (readonly [string, string, (payment: Verified) => Promise<void>])[] = [
  [
    'was withdrawn',
    'voided',
    async ({ paymentId, settle }) => {
      expect((await settle()).status).toBe(202)
      const ctx = forTenant(systemCtx(world.server.deps), { organisationId: org.id, environment: 'test' })
      expect(await withdrawSettlement({ ...ctx, actor: { kind: 'operator' } }, id('pay').parse(paymentId))).toBe(true)
    },
  ],
  ['failed because its payer was listed', 'settlement_failed', failAsListed],
  ['waited to be sent when its payer was listed', 'settlement_failed', failAsListedLate],
]

async function failAsListed({ payer, settle }: Verified): Promise<void> {
  screening.setResult(payer, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  const refused = [await settle(), await settle()]
  for (const response of refused)
    expect([response.status, codeOf(response), response.body.reason]).toEqual([
      409,
      'settlement-failed',
      'payer_sanctioned',
    ])
}

/** As after hours in which no node of the network answered. */
async function failAsListedLate({ payer, settle }: Verified): Promise<void> {
  expect((await settle()).status).toBe(202)
  screening.setResult(payer, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  await passRelays(relayPartsOf(world.server.deps), network)
  const refused = await settle()
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([409, 'settlement-failed', 'payer_sanctioned'])
}

test.each(ends)(
  'money of a payment that %s is credited whenever it arrives, as long as its signature is valid',
  async (_, status, end) => {
    const payment = await verified()
    await end(payment)
    for (const _day of [2, 4]) {
      await lookAfterTwoDays(payment)
      expect(await statusOf(payment)).toBe(status)
    }
    await sendFromDevAccount(chain, chain.tokens.USDC ?? '0x', payment.call)
    await lookAfterTwoDays(payment)
    expect(await statusOf(payment)).toBe('settled')
  },
)

/** Makes the rows of a payment 40 days old, with a signature that never ends. They are due now. */
async function makeOldAndEndless({ paymentId }: Verified): Promise<void> {
  const old = sql`created_at = created_at - interval '40 days', valid_before = '9999-12-31', check_at = now() - interval '1 second'`
  await world.database.db.run(sql`update relays set ${old} where subject_id = ${paymentId} and check_at is not null`)
  await world.database.db.run(sql`update payments set ${old} where id = ${paymentId} and check_at is not null`)
}

test('a signature without an end is read for 31 days, so that its month can be archived, and pays for nothing else', async () => {
  const [never, refused] = [await verified(), await verified()]
  await failAsListed(refused)
  for (const payment of [never, refused]) await makeOldAndEndless(payment)
  await voidUnsettled.run(systemCtx(world.server.deps))
  await passRelays(relayPartsOf(world.server.deps), network)
  const watched = sql`
    select (select count(*) from payments where id in (${never.paymentId}, ${refused.paymentId}) and check_at is not null)
      + (select count(*) from relays where subject_id = ${refused.paymentId} and check_at is not null) as count,
      (select count(*) from payment_claims where payment_id in (${never.paymentId}, ${refused.paymentId}) and claim_hash is not null) as claims`
  expect(await world.database.db.one(z.object({ count: z.bigint(), claims: z.bigint() }), watched)).toEqual({
    count: 0n,
    claims: 2n,
  })
  expect([await statusOf(never), await statusOf(refused)]).toEqual(['voided', 'settlement_failed'])
})
