import { createServer } from 'node:http'
import { tokenBalance } from '@purser/devnet'
import { mppxServer } from '@purser/devnet/mppx'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { sellersOf } from '../official-sellers.ts'
import { timesCovered } from '../steady-witness.ts'
import {
  aTransferStage,
  eventsOf,
  patient,
  reservedBy,
  stranger,
  type TransferStage,
  transferOf,
} from '../transfer-stage.ts'
import {
  aPayer,
  challengeOf,
  credentialOf,
  endOf,
  must,
  network,
  offer,
  pay,
  payloadOf,
  redeem,
  reservedOf,
  usdc,
} from '../wallet-payment-stage.ts'
import { type Answer, codeOf } from '../world.ts'

let stage: TransferStage
const sellers = sellersOf(() => stage)

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
})
afterAll(async () => {
  await sellers.close()
  await stage?.stop()
})

async function received(url: string) {
  const response = await fetch(url)
  return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() }
}

test('a child without coin pays the official x402 server, and the payment is a transfer that the chain confirms', async () => {
  const { master, child } = await aPayer(stage)
  const payTo = stranger()
  const url = `${await sellers.officialShop(payTo)}/report`
  const challenge = await received(`${url}?key=secret`)
  const paid = await pay(stage, { from: child, challenge, changes: { reference: 'report 7' } })
  expect([paid.status, paid.body]).toMatchObject([
    201,
    { status: 'pending', method: 'x402/v2', amount: '0.01', toAddress: payTo, route: 'direct', feeAmount: '0' },
  ])
  const { header, value } = credentialOf(paid)
  const response = await fetch(`${url}?key=secret`, { headers: { [header]: value } })
  expect([response.status, await response.text()]).toEqual([200, 'goods'])
  expect(await tokenBalance(stage.dev, 'USDC', payTo)).toBe(10_000n)
  expect(await endOf(stage, paid.body.id)).toEqual(['confirmed', null])
  const transfer = await transferOf(stage, String(paid.body.id))
  expect(transfer).toMatchObject({
    reference: 'report 7',
    resource: url,
    txHash: expect.stringMatching(/^0x/),
    fromWalletId: child.id,
  })
  await expect.poll(() => eventsOf(stage, String(paid.body.id)), patient).toEqual(['transfer.completed'])
  await expect.poll(() => reservedOf(stage, child), patient).toBe(0n)
  expect(await reservedBy(stage, master), 'it counts against a later policy').toBe(10n ** 16n)
})

test('the official mppx server takes the payment of a managed wallet, and one challenge is paid once', async () => {
  const { child } = await aPayer(stage)
  const seller = { realm: 'seller.test', secret: 'a secret of at least thirty-two bytes', price: '0.01' }
  const domain = must(usdc.eip712)
  const { dual } = mppxServer({ ...seller, payTo: stranger(), token: usdc.address, domain, chainId: network.chainId })
  const url = await sellers.serve(
    createServer(async (req, res) => {
      if (await dual(req, res)) res.end('goods')
    }),
  )
  const challenge = await received(url)
  const twice = { from: child, challenge, changes: { prefer: 'mpp' } }
  const answers = await Promise.all([pay(stage, twice), pay(stage, { ...twice, base: stage.hasty.base })])
  const [paid, refused] = answers.toSorted((left, right) => left.status - right.status)
  expect([paid?.status, paid?.body.method]).toEqual([201, 'mpp/evm-charge'])
  expect([refused?.status, codeOf(must(refused)), refused?.body.paymentId]).toEqual([
    409,
    'challenge-already-paid',
    paid?.body.id,
  ])
  const { header, value } = credentialOf(must(paid))
  const response = await fetch(url, { headers: { [header]: value } })
  expect([header, response.status, await response.text()]).toEqual(['Authorization', 200, 'goods'])
})

test('a version 1 challenge in the body is paid', async () => {
  const { child } = await aPayer(stage)
  const { amount: maxAmountRequired, ...rest } = offer({ network: 'base-sepolia' })
  const resource = { resource: 'https://seller.test/', description: '', mimeType: 'text/plain' }
  const body = JSON.stringify({ x402Version: 1, error: 'pay', accepts: [{ ...rest, ...resource, maxAmountRequired }] })
  const paid = await pay(stage, { from: child, challenge: { status: 402, headers: {}, body } })
  expect([paid.status, paid.body.method, credentialOf(paid).header]).toEqual([201, 'x402/v1', 'X-PAYMENT'])
  await redeem(stage, paid)
  expect(await endOf(stage, paid.body.id)).toEqual(['confirmed', null])
})

test('the witness covers a payment before its credential leaves', async () => {
  const { child } = await aPayer(stage)
  const { db } = stage.world.database
  const before = await timesCovered(db)
  expect(credentialOf(await pay(stage, { from: child, challenge: challengeOf(offer()) })).value).not.toBe('')
  expect(await timesCovered(db)).toBeGreaterThan(before)
})

test('a wallet has at most 1,000 signed payments that may still be used, also of parallel requests, and others pay', async () => {
  const [{ child }, { child: other }] = [await aPayer(stage), await aPayer(stage)]
  await stage.world.database.db.run(sql`
    insert into reservations (organisation_id, environment, network, owner, asset, reason, subject_id, part, raw_amount, authorization_nonce)
    select ${stage.org.id}, 'test', ${network.name}, ${child.address}, 'USDC', 'transfer', 'trf_' || at, 0, 0, decode(lpad(to_hex(at), 64, '0'), 'hex')
    from generate_series(1, 998) as at`)
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => pay(stage, { from: child, challenge: challengeOf(offer()) })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 429, 429, 429])
  const refused = must(answers.find(({ status }) => status === 429))
  expect([codeOf(refused), refused.body.limitOf]).toEqual(['too-many-unused-payments', 'address'])
  expect(refused.headers.get('retry-after')).toBe('60')
  expect((await pay(stage, { from: other, challenge: challengeOf(offer()) })).status).toBe(201)
})

test('all wallets of an account have at most 5,000 signed payments on a network that may still be used', async () => {
  const { db } = stage.world.database
  const { child } = await aPayer(stage)
  const [own, other] = [stage.org, await stage.world.organisation()]
  // At five addresses of the account's other organisation.
  await db.run(sql`
    insert into reservations (organisation_id, environment, network, owner, asset, reason, subject_id, part, raw_amount, authorization_nonce)
    select ${other.id}, 'test', ${network.name}, '0x' || lpad(to_hex(at % 5), 40, '0'), 'USDC', 'transfer', 'trf_other' || at, 0, 0,
      decode(lpad(to_hex(1000000 + at), 64, '0'), 'hex')
    from generate_series(1, 5000) as at`)
  const payOnce = () => pay(stage, { from: child, challenge: challengeOf(offer()) })
  expect((await payOnce()).status).toBe(201)
  const before = await db.one(
    z.object({ plan: z.string(), account: z.string().nullable() }),
    sql`select plan, quota_account_id as account from organisations where id = ${own.id}`,
  )
  await db.run(sql`
    update organisations set plan = 'hobby', quota_account_id = (select quota_account_id from organisations where id = ${other.id})
    where id = any(${[own.id, other.id]}::text[])`)
  const refused = await payOnce()
  expect([refused.status, codeOf(refused), refused.body.limitOf]).toEqual([
    429,
    'too-many-unused-payments',
    'organisation',
  ])
  await db.run(
    sql`update organisations set plan = ${before.plan}, quota_account_id = ${before.account} where id = ${own.id}`,
  )
  expect((await payOnce()).status).toBe(201)
})

test('one key has at most 2,500 signed payments on a network that may still be used, also after it was revoked, and another key pays', async () => {
  const { db } = stage.world.database
  const { child } = await aPayer(stage)
  const leaked = await stage.world.call(stage.key, 'POST', '/organisations/current/api-keys', {
    name: 'leaked',
    environment: 'test',
  })
  const payBy = (key: string) => {
    const body = { fromWalletId: child.id, challenge: challengeOf(offer()), maxAmount: '1' }
    return stage.world.call(key, 'POST', '/wallet-infra/pay', body)
  }
  const first = await payBy(String(leaked.body.key))
  expect(first.status).toBe(201)
  // At five addresses of an organisation that counts by itself: a person may sign in several.
  const { id: elsewhere } = await stage.world.organisation()
  await db.run(sql`
    insert into reservations overriding system value
    select (jsonb_populate_record(r, jsonb_build_object('seq', nextval(pg_get_serial_sequence('reservations', 'seq')), 'subject_id', 'trf_' || at,
      'organisation_id', ${elsewhere}::text, 'owner', '0x' || lpad(to_hex(16 + at % 5), 40, '0'), 'authorization_nonce', decode(lpad(to_hex(2000000 + at), 64, '0'), 'hex')))).*
    from reservations r, generate_series(1, 2499) as at where r.subject_id = ${String(first.body.id)}`)
  expect((await payBy(String(leaked.body.key))).status).toBe(201)
  await db.run(sql`update reservations set organisation_id = ${stage.org.id} where organisation_id = ${elsewhere}`)
  const refused = await payBy(String(leaked.body.key))
  expect([refused.status, codeOf(refused), refused.body.limitOf]).toEqual([429, 'too-many-unused-payments', 'caller'])
  expect((await payBy(stage.key)).status).toBe(201)
  await stage.world.call(stage.key, 'DELETE', `/organisations/current/api-keys/${String(leaked.body.id)}`)
  const { open } = await db.one(
    z.object({ open: z.bigint() }),
    sql`select count(*) as open from reservations where signed_by = ${String(leaked.body.id)} and ended_at is null`,
  )
  expect(open, 'sellers may still use them').toBe(2_501n)
})

test('an Idempotency-Key yields one signature, for simultaneous repeats and after the process died before its response', async () => {
  const { child } = await aPayer(stage)
  const challenge = challengeOf(offer())
  const keyed = { from: child, challenge, key: `pay-${child.id}` }
  const settled = async (base: string): Promise<Answer> => {
    for (;;) {
      const answer = await pay(stage, { ...keyed, base })
      if (codeOf(answer) !== 'idempotency-in-progress') return answer
    }
  }
  const answers = await Promise.all(
    [1, 2, 3, 4].map((at) => settled(at % 2 === 0 ? stage.hasty.base : stage.world.base)),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
  expect(new Set(answers.map((answer) => credentialOf(answer).value)).size).toBe(1)
  const [first] = answers
  // The process died after the payment was stored: neither the signature nor the answer is there.
  const { db } = stage.world.database
  await db.run(
    sql`update idempotency_keys set state = 'running', status = null, sealed_body = null, headers = null where key = ${keyed.key}`,
  )
  await db.run(sql`update wallet_payments set signature = null where transfer_id = ${String(first?.body.id)}`)
  const again = await settled(stage.hasty.base)
  expect([again.status, again.body.id]).toEqual([201, first?.body.id])
  expect(payloadOf(again).authorization).toEqual(payloadOf(must(first)).authorization)
  expect(await reservedOf(stage, child)).toBe(10_000n)
})

test('payments reserve their funds, whatever the number of processes, until the signature has expired unused', async () => {
  const { master, child } = await aPayer(stage)
  const big = () => ({ from: child, challenge: challengeOf(offer({ amount: '4000000' })), changes: { maxAmount: '5' } })
  const answers = await Promise.all(
    [1, 2, 3, 4].map((at) => pay(stage, { ...big(), base: at % 2 === 0 ? stage.hasty.base : stage.world.base })),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 422, 422])
  const refused = answers.filter(({ status }) => status === 422)
  expect(refused.map(codeOf)).toEqual(['insufficient-balance', 'insufficient-balance'])
  expect(await reservedBy(stage, master)).toBe(8n * 10n ** 18n)
  const signed = answers.filter(({ status }) => status === 201)
  const ends = signed.map((answer) => Number(payloadOf(answer).authorization.validBefore))
  await stage.world.database.db.run(sql`update relays set valid_before = now() - interval '1 second', check_at = now()
    where subject_id = any(${signed.map(({ body }) => String(body.id))}::text[])`)
  expect((await transferOf(stage, String(signed[0]?.body.id))).status, 'the chain decides').toBe('pending')
  await stage.chain.setNextBlockTimestamp({ timestamp: BigInt(Math.max(...ends) + 1) })
  for (const { body } of signed) expect(await endOf(stage, body.id)).toEqual(['failed', 'authorization-expired'])
  expect(await reservedOf(stage, child)).toBe(0n)
  expect(await reservedBy(stage, master)).toBe(0n)
  expect(await eventsOf(stage, String(signed[0]?.body.id))).toEqual(['transfer.failed'])
})
