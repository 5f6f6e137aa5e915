import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aTransferStage, masters, reservedBy, stranger, type TransferStage, transferOf } from '../transfer-stage.ts'
import {
  anAdmin,
  aPayer,
  approve,
  approving,
  challengeOf,
  credentialOf,
  endOf,
  offer,
  pay,
  payloadOf,
  redeem,
  reservedOf,
  usdc,
} from '../wallet-payment-stage.ts'
import { type Answer, codeOf } from '../world.ts'

// A hostile 402, and a policy that says who may be paid how much.

let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
})
afterAll(() => stage?.stop())

const Refusals = z.array(z.object({ offer: z.string(), reason: z.string() }))
const reasonsOf = ({ body }: Answer) => Refusals.parse(body.refusals).map(({ reason }) => reason)

test('offers that lie about the token, the chain or the price, or exceed the caller’s limits, are refused and not signed', async () => {
  const { child } = await aPayer(stage)
  const hostile = [
    offer({ extra: { name: 'Other Coin', version: '9' } }),
    offer({ network: 'eip155:8453' }),
    offer({ network: 'eip155:1' }),
    offer({ asset: stranger() }),
    offer({ amount: '2000000' }),
    offer({ amount: '0' }),
    offer({ payTo: usdc.address }),
    offer({ payTo: `0x${'0'.repeat(40)}` }),
    offer({ scheme: 'upto' }),
  ]
  const refused = await pay(stage, { from: child, challenge: challengeOf(...hostile) })
  expect([refused.status, codeOf(refused), refused.body.detail]).toEqual([
    422,
    'no-payable-offer',
    expect.stringContaining('network-not-allowed'),
  ])
  expect(reasonsOf(refused)).toEqual([
    'wrong-token-domain',
    'network-not-allowed',
    'network-not-allowed',
    'unknown-token',
    'above-max-amount',
    'no-amount',
    'service-address',
    'malformed',
    'unsupported-scheme',
  ])
  const limits = [{ chains: ['polygon'] }, { tokens: ['EURC'] }, { maxAmount: '0.009999' }]
  const limited = await Promise.all(
    limits.map((changes) => pay(stage, { from: child, challenge: challengeOf(offer()), changes })),
  )
  expect(limited.map(reasonsOf)).toEqual([['network-not-allowed'], ['token-not-allowed'], ['above-max-amount']])
  const empty = await pay(stage, {
    from: child,
    challenge: { status: 402, headers: { 'payment-required': '%%%' }, body: '{' },
  })
  expect([empty.status, reasonsOf(empty)]).toEqual([422, ['unreadable']])
  expect(await reservedOf(stage, child)).toBe(0n)
})

test('the cheapest offer within the limits is paid, and a signature is valid for an hour at most', async () => {
  const { child } = await aPayer(stage)
  const year = 31_536_000
  const offers = [
    offer({ amount: '3000000' }),
    offer({ amount: '20000' }),
    offer({ amount: '15000', maxTimeoutSeconds: year }),
  ]
  const paid = await pay(stage, { from: child, challenge: challengeOf(...offers) })
  expect([paid.status, paid.body.amount]).toEqual([201, '0.015'])
  const now = Math.floor(stage.clock.now().getTime() / 1_000)
  expect(Number(payloadOf(paid).authorization.validBefore)).toBeLessThanOrEqual(now + 3_600)
})

test('a sanctioned payee gets nothing, and the next offer is paid', async () => {
  const { child } = await aPayer(stage)
  const sanctioned = offer({ amount: '1', payTo: '0x8589427373D6D84E98730D7795D8f6f8731FDA16' })
  const refused = await pay(stage, { from: child, challenge: challengeOf(sanctioned) })
  expect([refused.status, codeOf(refused)]).toEqual([422, 'recipient-flagged'])
  const paid = await pay(stage, { from: child, challenge: challengeOf(sanctioned, offer()) })
  expect([paid.status, paid.body.amount]).toEqual([201, '0.01'])
})

test('a policy decides by its operation `pay`, the payee and the caps, over the wallet and its children', async () => {
  const [known, other] = [stranger(), stranger()]
  const tokens = { USDC: { perDay: '1' } }
  const { child } = await aPayer(stage, { operations: { pay: { recipients: [known] } }, tokens })
  const payer = await aPayer(stage, { operations: { transfer: { recipients: 'any' } }, tokens })
  const notNamed = await pay(stage, { from: payer.child, challenge: challengeOf(offer()) })
  expect([notNamed.status, codeOf(notNamed), notNamed.body.rule]).toEqual([403, 'policy-denied', 'operation'])
  const unknown = await pay(stage, { from: child, challenge: challengeOf(offer({ payTo: other })) })
  expect([unknown.status, unknown.body.rule]).toEqual([403, 'recipient'])
  const chosen = await pay(stage, {
    from: child,
    challenge: challengeOf(offer({ payTo: other }), offer({ payTo: known, amount: '600000' })),
  })
  expect([chosen.status, chosen.body.toAddress]).toEqual([201, known])
  const capped = await pay(stage, { from: child, challenge: challengeOf(offer({ payTo: known, amount: '600000' })) })
  expect([capped.status, capped.body.rule]).toEqual([403, 'perDay'])
  expect(await reservedOf(stage, child)).toBe(600_000n)
})

async function aWaiting(payTo: string) {
  const payer = await aPayer(stage, approving)
  const waiting = await pay(stage, { from: payer.child, challenge: challengeOf(offer({ amount: '900000', payTo })) })
  expect([waiting.status, waiting.body.credential]).toEqual([202, null])
  const { id } = z.object({ id: z.string() }).parse(waiting.body.approval)
  return { ...payer, approvalId: id, paymentId: String(waiting.body.id) }
}

test('a payment that was approved takes one fresh 402 for the same payee and at most the approved amount', async () => {
  const payTo = stranger()
  const { master, child, approvalId, paymentId } = await aWaiting(payTo)
  const fresh = (changes: Record<string, unknown>, key?: string) =>
    pay(stage, {
      from: child,
      challenge: challengeOf(offer({ amount: '800000', payTo, ...changes })),
      changes: { approvedPaymentId: paymentId },
      ...(key === undefined ? {} : { key }),
    })
  const early = await fresh({}, 'until it is approved')
  expect([early.status, codeOf(early), early.headers.get('retry-after')]).toEqual([
    409,
    'approved-payment-not-open',
    '5',
  ])
  expect(await reservedOf(stage, child)).toBe(900_000n)
  await approve(stage, approvalId, paymentId)
  const others = await Promise.all([fresh({ payTo: stranger() }), fresh({ amount: '900001' })])
  expect(others.map(reasonsOf)).toEqual([['not-as-approved'], ['not-as-approved']])
  const answers = await Promise.all([fresh({}, 'until it is approved'), fresh({}, 'another key')])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409])
  expect(answers.find(({ status }) => status === 409)?.headers.get('retry-after')).toBeNull()
  const [paid] = answers.filter(({ status }) => status === 201)
  if (paid === undefined) throw new Error('nothing was paid')
  expect([paid.body.id, paid.body.amount, credentialOf(paid).header]).toEqual([paymentId, '0.8', 'PAYMENT-SIGNATURE'])
  expect(await reservedOf(stage, child)).toBe(800_000n)
  expect(await reservedBy(stage, master)).toBe(8n * 10n ** 17n)
  await redeem(stage, paid)
  expect(await endOf(stage, paymentId)).toEqual(['confirmed', null])
})

test('a payment can be made as soon as it is approved, also before the decision is applied', async () => {
  const payTo = stranger()
  const admin = await anAdmin(stage)
  const waiting = await Promise.all([aWaiting(payTo), aWaiting(payTo), aWaiting(payTo)])
  const answers = await Promise.all(
    waiting.map(async ({ child, approvalId, paymentId }) => {
      expect((await admin.call('POST', `/approvals/${approvalId}/approve`)).status).toBe(200)
      const challenge = challengeOf(offer({ amount: '900000', payTo }))
      return await pay(stage, { from: child, challenge, changes: { approvedPaymentId: paymentId } })
    }),
  )
  expect(answers.map(({ status, body }) => [status, body.id])).toEqual(waiting.map(({ paymentId }) => [201, paymentId]))
})

test('a payment that is refused, undecided for a day or unused for an hour ends, by the test clock too, and its funds are free', async () => {
  const [refused, expiring, unused] = await Promise.all([
    aWaiting(stranger()),
    aWaiting(stranger()),
    aWaiting(stranger()),
  ])
  const advance = (by: string) => stage.world.call(stage.org.testKey, 'POST', '/test/clock', { advance: by })
  expect((await (await anAdmin(stage)).call('POST', `/approvals/${refused.approvalId}/refuse`, {})).status).toBe(200)
  expect(await endOf(stage, refused.paymentId)).toEqual(['failed', 'approval-refused'])
  await approve(stage, unused.approvalId, unused.paymentId)
  expect((await advance('1h')).body).toMatchObject({ moved: { approvals: 2 } })
  expect(await endOf(stage, unused.paymentId)).toEqual(['failed', 'approval-unused'])
  expect((await transferOf(stage, expiring.paymentId)).status).toBe('pending')
  expect((await advance('23h')).body).toMatchObject({ moved: { approvals: 1 } })
  expect(await endOf(stage, expiring.paymentId)).toEqual(['failed', 'approval-expired'])
  const all = [refused, expiring, unused]
  expect(await Promise.all(all.map(({ child }) => reservedOf(stage, child)))).toEqual([0n, 0n, 0n])
  expect((await transferOf(stage, unused.paymentId)).amount).toBe('0.9')
})

test('an approval pays from its own wallet alone, and one of many fresh 402s at once at two processes', async () => {
  const payTo = stranger()
  const { master, child, approvalId, paymentId } = await aWaiting(payTo)
  await approve(stage, approvalId, paymentId)
  const bases = [stage.world.base, stage.hasty.base]
  const fresh = (from = child, more: Record<string, unknown> = {}, base = bases[0]) => {
    const challenge = challengeOf(offer({ amount: '900000', payTo }))
    return pay(stage, { from, challenge, changes: { approvedPaymentId: paymentId, ...more }, ...(base && { base }) })
  }
  expect(codeOf(await fresh(master))).toBe('transfer-not-found')
  expect(codeOf(await fresh(child, { maxAmount: '0.5' }))).toBe('no-payable-offer')
  const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => fresh(child, {}, bases[at % 2])))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(7).fill(409)])
  expect(await reservedOf(stage, child)).toBe(900_000n)
})

test.each([
  ['recipients', () => ({ recipients: [stranger()] }), '5', 'recipient'],
  ['a cap', () => ({ recipients: 'any' }), '0.8', 'perDay'],
])('a payment that was approved is refused by %s set since, and stays open', async (_, operation, perDay, rule) => {
  const payTo = stranger()
  const { master, child, approvalId, paymentId } = await aWaiting(payTo)
  await approve(stage, approvalId, paymentId)
  const policy = { operations: { pay: operation() }, tokens: { USDC: { perDay, approvalAbove: '0.5' } } }
  const changed = await stage.world.call(stage.key, 'PUT', `${masters}/${master.id}/policy`, policy)
  expect([changed.status, codeOf(changed)]).toEqual([200, ''])
  const challenge = challengeOf(offer({ amount: '900000', payTo }))
  const refused = await pay(stage, { from: child, challenge, changes: { approvedPaymentId: paymentId } })
  expect([refused.status, codeOf(refused), refused.body.rule]).toEqual([403, 'policy-denied', rule])
  expect([(await transferOf(stage, paymentId)).status, await reservedOf(stage, child)]).toEqual(['pending', 900_000n])
})

test('approved payments that cannot be ended keep no funds of others, and are tried again ever later', async () => {
  const unused = await aWaiting(stranger())
  await approve(stage, unused.approvalId, unused.paymentId)
  const { db } = stage.world.database
  // Their transfers do not exist.
  await db.tx(async (tx) => {
    await tx.run(sql`set local session_replication_role = replica`)
    await tx.run(sql`
      insert into wallet_payments (transfer_id, organisation_id, environment, method, pay_until)
      select 'wtx_0000000000000000000000' || lpad(n::text, 4, '0'), ${stage.org.id}, 'test', 'x402/v2', now() - interval '1 day' from generate_series(1, 60) as n`)
  })
  expect((await stage.world.call(stage.org.testKey, 'POST', '/test/clock', { advance: '1h' })).status).toBe(200)
  expect(await endOf(stage, unused.paymentId)).toEqual(['failed', 'approval-unused'])
  expect(await reservedOf(stage, unused.child)).toBe(0n)
  const later = sql`select count(*) filter (where end_after > now() + interval '50 minutes') as later, count(*) as all from wallet_payments where pay_until < now() - interval '23 hours'`
  const Count = z.object({ later: z.bigint(), all: z.bigint() })
  await expect.poll(() => db.one(Count, later)).toEqual({ later: 60n, all: 60n })
  await db.run(sql`delete from wallet_payments where pay_until = (select min(pay_until) from wallet_payments)`)
})
