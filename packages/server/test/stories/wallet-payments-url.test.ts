import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tokenBalance } from '@purser/devnet'
import { mppxServer } from '@purser/devnet/mppx'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { sellersOf } from '../official-sellers.ts'
import { aTransferStage, type Managed, stranger, type TransferStage, transferOf } from '../transfer-stage.ts'
import {
  aPayer,
  approve,
  approving,
  challengeOf,
  credentialOf,
  endOf,
  must,
  network,
  offer,
  payloadOf,
  redeem,
  reservedOf,
  usdc,
} from '../wallet-payment-stage.ts'
import { type Answer, codeOf, request } from '../world.ts'

let stage: TransferStage
let child: Promise<Managed> | undefined
const sellers = sellersOf(() => stage)

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia', config: { webhooksAllowPrivate: true } })
})
afterAll(async () => {
  await sellers.close()
  await stage?.stop()
})

interface PayUrl {
  readonly url: string
  readonly changes?: Record<string, unknown>
  readonly key?: string
}

/** The child that pays for all tests, with 10 USDC. */
function payer(): Promise<Managed> {
  child ??= aPayer(stage).then((wallets) => wallets.child)
  return child
}

async function payUrl({ url, changes = {}, key }: PayUrl): Promise<Answer> {
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  const body = { fromWalletId: (await payer()).id, url, maxAmount: '1', ...changes }
  return request(stage.world.base, { key: stage.key, method: 'POST', path: '/wallet-infra/pay', body, headers })
}

interface Seen {
  readonly method: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A seller that answers 402 without a credential, and as `paid` says with one. */
async function aSeller(paid: (response: ServerResponse) => void, unpaid = challengeOf(offer())) {
  const seen: Seen[] = []
  const url = await sellers.serve(
    createServer((req, res) => {
      const chunks: Buffer[] = []
      req.on('data', (chunk: Buffer) => chunks.push(chunk))
      req.on('end', () => {
        seen.push({ method: req.method ?? '', headers: req.headers, body: Buffer.concat(chunks).toString() })
        if (req.headers['payment-signature'] === undefined) res.writeHead(402, unpaid.headers).end('{}')
        else paid(res)
      })
    }),
  )
  return { url, seen, paidOnes: () => seen.filter(({ headers }) => headers['payment-signature'] !== undefined) }
}

const Response = z.object({ status: z.number(), headers: z.record(z.string(), z.string()).nullable() })
const responseOf = ({ body }: Answer) => Response.loose().parse(body.response)

test('the official x402 server is fetched and paid in one call, which returns the goods, the receipt and the transaction', async () => {
  const payTo = stranger()
  const url = `${await sellers.officialShop(payTo)}/report`
  const paid = await payUrl({ url, changes: { reference: 'report 9' }, key: 'report-9' })
  expect([paid.status, paid.body]).toMatchObject([
    201,
    { status: 'pending', method: 'x402/v2', amount: '0.01', outcome: 'paid', reference: 'report 9' },
  ])
  const txHash = expect.stringMatching(/^0x[0-9a-f]{64}$/)
  expect(responseOf(paid)).toMatchObject({
    status: 200,
    body: 'goods',
    bodyEncoding: 'text',
    isWhole: true,
    receipt: { txHash, details: { success: true } },
  })
  expect(await tokenBalance(stage.dev, 'USDC', payTo)).toBe(10_000n)
  const again = await payUrl({ url, changes: { reference: 'report 9' }, key: 'report-9' })
  expect(again.body).toEqual(paid.body)
  expect(await tokenBalance(stage.dev, 'USDC', payTo)).toBe(10_000n)
  expect(await endOf(stage, paid.body.id)).toEqual(['confirmed', null])
  const transfer = await transferOf(stage, String(paid.body.id))
  expect(z.looseObject({ receipt: z.object({ txHash: z.string() }) }).parse(paid.body.response).receipt.txHash).toBe(
    transfer.txHash,
  )
})

test('the official mppx server is fetched and paid in one call, unless the caller uses the header of the credential', async () => {
  const seller = { realm: 'seller.test', secret: 'a secret of at least thirty-two bytes', price: '0.01' }
  const domain = must(usdc.eip712)
  const { dual } = mppxServer({ ...seller, payTo: stranger(), token: usdc.address, domain, chainId: network.chainId })
  const url = await sellers.serve(
    createServer(async (req, res) => {
      if (await dual(req, res)) res.end('goods')
    }),
  )
  const paid = await payUrl({ url, changes: { prefer: 'mpp' } })
  expect([paid.status, paid.body.method, paid.body.outcome]).toEqual([201, 'mpp/evm-charge', 'paid'])
  expect(responseOf(paid)).toMatchObject({ status: 200, body: 'goods', receipt: { details: { status: 'success' } } })
  const own = await payUrl({ url, changes: { prefer: 'mpp', headers: { authorization: 'Bearer mine' } } })
  expect(own.body.method, 'x402 has a header of its own').toBe('x402/v2')
})

test('a request arrives as given both times, with the credential the second time alone and nothing of ours', async () => {
  const seller = await aSeller((res) => res.writeHead(200, { 'x-shop': 'b' }).end(Buffer.from([0xff, 0x00])))
  const changes = { method: 'POST', headers: { 'X-Query': 'q', 'content-type': 'text/plain' }, body: 'aé' }
  const paid = await payUrl({ url: `${seller.url}/ask?a=b`, changes })
  expect(responseOf(paid)).toMatchObject({ body: '/wA=', bodyEncoding: 'base64', receipt: null })
  expect(responseOf(paid).headers).toMatchObject({ 'x-shop': 'b' })
  expect(seller.seen.map(({ method, body }) => [method, body])).toEqual([
    ['POST', 'aé'],
    ['POST', 'aé'],
  ])
  const names = Object.keys(must(seller.seen[0]).headers).toSorted()
  expect(names).toEqual(['accept', 'connection', 'content-length', 'content-type', 'host', 'user-agent', 'x-query'])
  expect(Object.keys(must(seller.seen[1]).headers).filter((name) => !names.includes(name))).toEqual([
    'payment-signature',
  ])
})

test('what is not a 402 is returned without a payment, and a redirect is followed neither before nor after one', async () => {
  const elsewhere = await aSeller((res) => res.end('stolen'))
  const free = await sellers.serve(createServer((_, res) => res.writeHead(302, { location: elsewhere.url }).end()))
  const unpaid = await payUrl({ url: free })
  expect([unpaid.status, unpaid.body.id, responseOf(unpaid).status]).toEqual([200, null, 302])
  const moving = await aSeller((res) => res.writeHead(307, { location: elsewhere.url }).end())
  const paid = await payUrl({ url: moving.url })
  expect([paid.status, paid.body.outcome, responseOf(paid).status]).toEqual([201, 'unknown', 307])
  expect(elsewhere.seen).toEqual([])
})

test.each([
  ['a seller that still serves the payment', 409, JSON.stringify({ status: 409, code: 'delivery-in-progress' })],
  ['a seller that names the pending settlement in the body', 402, JSON.stringify({ error: 'settlement_pending' })],
  ['a seller whose 409 is too long to be read', 409, ' '.repeat(300_000)],
])('%s has refused nothing', async (_, status, body) => {
  const seller = await aSeller((res) => res.writeHead(status, { 'content-type': 'application/json' }).end(body))
  const paid = await payUrl({ url: seller.url })
  expect([paid.status, paid.body.outcome, responseOf(paid).status]).toEqual([201, 'unknown', status])
})

test('a seller that answers 402 to the credential again is paid once, and its answer is returned', async () => {
  const again = challengeOf(offer())
  const seller = await aSeller((res) => res.writeHead(402, again.headers).end('more'))
  const before = await reservedOf(stage, await payer())
  const paid = await payUrl({ url: seller.url, key: 'greedy' })
  expect([paid.status, paid.body.outcome, responseOf(paid).status]).toEqual([201, 'refused', 402])
  expect((await payUrl({ url: seller.url, key: 'greedy' })).body).toEqual(paid.body)
  expect([seller.paidOnes().length, (await reservedOf(stage, await payer())) - before]).toEqual([1, 10_000n])
})

test('a seller that hangs up leaves the outcome unknown, with the credential that can be used once', async () => {
  const seller = await aSeller((res) => void res.socket?.destroy())
  const paid = await payUrl({ url: seller.url })
  expect([paid.status, paid.body.outcome, paid.body.response]).toEqual([201, 'unknown', null])
  expect(credentialOf(paid).value).toBe(must(seller.paidOnes()[0]).headers['payment-signature'])
  await redeem(stage, paid)
  expect(await endOf(stage, paid.body.id)).toEqual(['confirmed', null])
})

const keys = '/organisations/current/api-keys'
const asOwner = () => ({ key: stage.key, path: keys })

async function anAgent() {
  const body = { name: 'agent', environment: 'test' }
  const made = await request(stage.world.base, { ...asOwner(), method: 'POST', body })
  const { id, key } = z.object({ id: z.string(), key: z.string() }).parse(made.body)
  const revoke = () => request(stage.world.base, { ...asOwner(), method: 'DELETE', path: `${keys}/${id}` })
  const pay = async (more: object) => {
    const paid = { fromWalletId: (await payer()).id, maxAmount: '1', ...more }
    return request(stage.world.base, { key, method: 'POST', path: '/wallet-infra/pay', body: paid })
  }
  return { revoke, pay }
}

test('a key that is revoked while the seller prepares its 402 pays nothing', async () => {
  const agent = await anAgent()
  const seen: unknown[] = []
  const url = await sellers.serve(
    createServer(async (req, res) => {
      seen.push(req.headers['payment-signature'])
      await agent.revoke()
      res.writeHead(402, challengeOf(offer()).headers).end('{}')
    }),
  )
  const before = await reservedOf(stage, await payer())
  const refused = await agent.pay({ url })
  expect([refused.status, codeOf(refused)]).toEqual([401, 'unauthorized'])
  expect([seen, (await reservedOf(stage, await payer())) - before]).toEqual([[undefined], 0n])
})

test('a key that is revoked while its payment waits to be stored pays nothing', async () => {
  const agent = await anAgent()
  const { id } = await payer()
  const before = await reservedOf(stage, await payer())
  const { db } = stage.world.database
  let waiting: Promise<Answer> | undefined
  await db.tx(async (tx) => {
    await tx.run(
      sql`select from master_wallets where id = (select master_wallet_id from child_addresses where id = ${id}) for update`,
    )
    waiting = agent.pay({ challenge: challengeOf(offer()) })
    await expect.poll(isStoring, { timeout: 20_000 }).toBe(true)
    expect((await agent.revoke()).status).toBe(204)
  })
  const refused = must(await waiting)
  expect([refused.status, codeOf(refused)]).toEqual([401, 'unauthorized'])
  expect((await reservedOf(stage, await payer())) - before).toBe(0n)
})

async function isStoring(): Promise<boolean> {
  const waits = sql`select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and strpos(query, 'from master_wallets') > 0) as is`
  return (await stage.world.database.db.one(z.object({ is: z.boolean() }), waits)).is
}

test('a repeat after the process died between the payment and its answer pays nothing and answers what is known', async () => {
  const seller = await aSeller((res) => res.end('goods'))
  const { db } = stage.world.database
  const paid = await payUrl({ url: seller.url, key: 'crash' })
  const id = String(paid.body.id)
  const forget = sql`update idempotency_keys set state = 'running', status = null, sealed_body = null, headers = null where key = 'crash'`
  await db.run(forget)
  const afterAnswer = await payUrl({ url: seller.url, key: 'crash' })
  expect([afterAnswer.body.id, afterAnswer.body.outcome]).toEqual([id, 'paid'])
  expect(responseOf(afterAnswer)).toMatchObject({ status: 200, headers: null, body: null })
  // The process died before the seller answered, or while it waited.
  await db.run(
    sql`update wallet_payments set outcome = null, response_status = null, signature = null where transfer_id = ${id}`,
  )
  expect(codeOf(await payUrl({ url: seller.url, key: 'crash' }))).toBe('idempotency-in-progress')
  await db.run(sql`update wallet_payments set fetch_until = now() - interval '1 second' where transfer_id = ${id}`)
  const unanswered = await payUrl({ url: seller.url, key: 'crash' })
  expect([unanswered.body.id, unanswered.body.outcome, unanswered.body.response]).toEqual([id, 'unknown', null])
  expect(payloadOf(unanswered).authorization).toEqual(payloadOf(paid).authorization)
  expect(seller.seen.length, 'nothing was fetched again').toBe(2)
})

test('a long answer is cut at a mebibyte and not stored: its repeat says that it was paid', async () => {
  const seller = await aSeller((res) => res.end('a'.repeat(1_100_000)))
  const paid = await payUrl({ url: seller.url, key: 'long' })
  expect(responseOf(paid)).toMatchObject({ status: 200, body: 'a'.repeat(1_048_576), isWhole: false })
  const again = await payUrl({ url: seller.url, key: 'long' })
  expect([again.body.id, again.body.outcome, responseOf(again).headers]).toEqual([paid.body.id, 'paid', null])
})

test('a payment above the approval limit waits, and its URL is paid with a fresh 402 once a person has approved it', async () => {
  const { child: own } = await aPayer(stage, approving)
  const seller = await aSeller((res) => res.end('goods'), challengeOf(offer({ amount: '900000' })))
  const waiting = await payUrl({ url: seller.url, changes: { fromWalletId: own.id } })
  expect([waiting.status, waiting.body]).toMatchObject([202, { credential: null, outcome: null, response: null }])
  expect(seller.paidOnes()).toEqual([])
  const paymentId = String(waiting.body.id)
  await approve(stage, z.object({ id: z.string() }).parse(waiting.body.approval).id, paymentId)
  const paid = await payUrl({ url: seller.url, changes: { fromWalletId: own.id, approvedPaymentId: paymentId } })
  expect([paid.status, paid.body.id, paid.body.outcome]).toEqual([201, paymentId, 'paid'])
  expect(responseOf(paid)).toMatchObject({ status: 200, body: 'goods' })
})

/** A seller that answers its first requests with these statuses, and is `aSeller` after that. */
async function aFailingSeller(statuses: readonly number[], unpaid: ReturnType<typeof challengeOf>) {
  const left = [...statuses]
  const paidWith: unknown[] = []
  const url = await sellers.serve(
    createServer((req, res) => {
      const failure = left.shift()
      if (failure !== undefined) return res.writeHead(failure).end('a'.repeat(failure === 200 ? 70_000 : 1))
      const credential = req.headers['payment-signature']
      if (credential === undefined) return res.writeHead(402, unpaid.headers).end('{}')
      paidWith.push(credential)
      return res.end('goods')
    }),
  )
  return { url, paidWith }
}

test('a repeat after a seller failed before anything was paid pays once with the same approval and key', async () => {
  const { child: own } = await aPayer(stage, approving)
  const price = challengeOf(offer({ amount: '900000' }))
  const changes = { fromWalletId: own.id }
  const waiting = await payUrl({ url: (await aFailingSeller([], price)).url, changes })
  const paymentId = String(waiting.body.id)
  await approve(stage, z.object({ id: z.string() }).parse(waiting.body.approval).id, paymentId)

  const failing = await aFailingSeller([503, 500, 404, 200], price)
  const repeat = { changes: { ...changes, approvedPaymentId: paymentId }, key: `approved-${paymentId}` }
  const statuses: number[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    const failed = await payUrl({ url: failing.url, ...repeat })
    expect([failed.status, failed.body.id]).toEqual([200, null])
    statuses.push(responseOf(failed).status)
  }
  expect(statuses).toEqual([503, 500, 404, 200])
  const answers = await Promise.all(Array.from({ length: 4 }, () => payUrl({ url: failing.url, ...repeat })))
  const paid = answers.filter(({ status }) => status === 201)
  expect(paid.map(({ body }) => [body.id, body.outcome])).toContainEqual([paymentId, 'paid'])
  expect(answers.filter(({ status }) => status !== 201).map(codeOf)).toEqual(
    answers.filter(({ status }) => status !== 201).map(() => 'idempotency-in-progress'),
  )
  expect((await payUrl({ url: failing.url, ...repeat })).body).toEqual(must(paid[0]).body)
  expect([failing.paidWith.length, new Set(failing.paidWith).size]).toEqual([1, 1])
})

test('what a seller delivers without a payment is returned to a repeat, and not requested again', async () => {
  const served: string[] = []
  const url = await sellers.serve(createServer((_, res) => res.end(`free ${served.push('one')}`)))
  const first = await payUrl({ url, changes: { method: 'POST', body: '{}' }, key: 'free' })
  const again = await payUrl({ url, changes: { method: 'POST', body: '{}' }, key: 'free' })
  expect([again.body, served.length]).toEqual([first.body, 1])
})

test('a repeat whose seller gave a 402 that was paid before pays the next 402', async () => {
  const withId = (challengeId: string) => challengeOf(offer({ extra: { ...usdc.eip712, challengeId }, payTo }))
  const payTo = stranger()
  let current = withId('stale')
  const seller = await sellers.serve(
    createServer((req, res) => {
      if (req.headers['payment-signature'] === undefined) res.writeHead(402, current.headers).end('{}')
      else res.end('goods')
    }),
  )
  expect((await payUrl({ url: seller, key: 'stale-1' })).status).toBe(201)
  const refused = await payUrl({ url: seller, key: 'stale-2' })
  expect([refused.status, codeOf(refused)]).toEqual([409, 'challenge-already-paid'])
  current = withId('fresh')
  const paid = await payUrl({ url: seller, key: 'stale-2' })
  expect([paid.status, paid.body.outcome]).toEqual([201, 'paid'])
})

test.each([
  ['neither a challenge nor a URL', { url: undefined }],
  ['both', { challenge: challengeOf(offer()) }],
  ['a method without a URL', { url: undefined, challenge: challengeOf(offer()), method: 'GET' }],
  ['a Host', { headers: { Host: 'other.test' } }],
  ['a field of the connection', { headers: { 'Transfer-Encoding': 'chunked' } }],
  ['a line break', { headers: { 'x-a': 'a\r\nx-b: c' } }],
  ['a payment of its own', { headers: { 'X-Payment': 'e30=' } }],
  ['a body with GET', { body: 'a' }],
  ['a body that is no base64', { method: 'POST', body: '!', bodyEncoding: 'base64' }],
])('a request with %s is refused before anything is fetched', async (_, changes) => {
  const refused = await payUrl({ url: 'http://127.0.0.1:1/', changes })
  expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
})

test('a URL that leads nowhere, or where the service does not go, is refused with the reason', async () => {
  const reasonOf = async (url: string) => {
    const { status, body } = await payUrl({ url })
    return [status, body.reason]
  }
  expect(await reasonOf('http://127.0.0.1:1/')).toEqual([502, 'unreachable'])
  expect(await reasonOf('ftp://seller.test/')).toEqual([422, 'scheme-refused'])
  expect(await reasonOf('http://169.254.169.254/latest/meta-data')).toEqual([422, 'address-refused'])
  expect(await reasonOf('http://user:secret@seller.test/')).toEqual([422, 'credentials-refused'])
})
