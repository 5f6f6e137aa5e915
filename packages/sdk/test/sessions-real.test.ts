import { createServer } from 'node:http'
import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import express from 'express'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import { createPurser, PaymentRefusedError, type Purser } from '../src/index.ts'
import {
  type Fault,
  payMiddleware,
  sessionOf,
  vaultMiddleware,
  vaultOf,
  walletMiddleware,
} from '../src/middleware/express.ts'
import { createPayingFetch, type PaymentRecord } from '../src/pay/index.ts'
import { close, listen } from './fake-purser.ts'
import { account } from './pay-stage.ts'

let chain: DevChain
let world: World
let org: Org
let purser: Purser
let wallet: { readonly id: string; readonly address: `0x${string}` }
const closing: (() => Promise<void>)[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 20_000 } })
  org = await world.organisation()
  purser = createPurser({ apiKey: org.testKey, baseUrl: world.base })
  wallet = await world.wallet(org)
  await fundToken(chain, 'USDC', account.address, 1_000_000n)
})
afterEach(async () => {
  for (const stop of closing.splice(0)) await stop()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

interface Shop {
  readonly url: string
  readonly faults: Fault[]
}

/** A shop whose handler stores the request in the vault of the payment. */
async function aShop(): Promise<Shop> {
  const faults: Fault[] = []
  const app = express()
  const onFault = (fault: Fault) => void faults.push(fault)
  const options = { apiKey: org.testKey, baseUrl: world.base, walletId: wallet.id, registry: false, onFault }
  app.use(walletMiddleware({ ...options, acceptSessions: true, sessionTtl: '1h' }))
  app.use(payMiddleware({ price: '0.01' }), vaultMiddleware())
  app.get('/ask/:city', async (req, res) => {
    await req.vault?.addDocument(req.params.city, { city: req.params.city })
    res.json({ vault: await vaultOf(req).id(), session: sessionOf(req)?.sessionId ?? null })
  })
  const server = createServer(app)
  closing.push(() => close(server))
  return { url: await listen(server), faults }
}

function aPayer() {
  const paid: PaymentRecord[] = []
  const onPayment = (record: PaymentRecord) => void paid.push(record)
  return { paid, pay: createPayingFetch({ signer: account, limits: { perCall: '0.01' }, onPayment }) }
}

test('one payment on the chain covers three calls, and their vault holds what all three did', async () => {
  const { url, faults } = await aShop()
  const { paid, pay } = aPayer()
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const answers: Record<string, unknown>[] = []
  for (const city of ['Oslo', 'Lima', 'Rome']) answers.push(await (await pay(`${url}/ask/${city}`)).json())
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
  expect([paid.length, faults]).toEqual([1, []])

  const [session, ...others] = await purser.sessions.list().toArray({ limit: 10 })
  expect(others).toEqual([])
  const { sessionId = '', vaultId = '' } = session ?? {}
  expect(answers).toEqual([null, sessionId, sessionId].map((shown) => ({ vault: vaultId, session: shown })))
  expect(await purser.sessions.get(sessionId)).toEqual(session)
  const { documents } = await purser.vaults.get(vaultId)
  expect(documents.map(({ name }) => name).sort()).toEqual(['Lima', 'Oslo', 'Rome'])
  const [log] = await purser.payments.logs.list().toArray({ limit: 1 })
  expect(log).toMatchObject({ sessionId, vaultId, status: 'settled' })
})

test('a session of one shop gets a 402 at another shop of the same wallet', async () => {
  const [here, there] = [await aShop(), await aShop()]
  const { paid, pay } = aPayer()
  const bought = await pay(`${here.url}/ask/Oslo`)
  const token = bought.headers.get('x-service-session-id') ?? ''
  expect(paid).toHaveLength(1)
  const headers = { 'X-Service-Session-Id': token }
  expect((await fetch(`${here.url}/ask/Lima`, { headers })).status).toBe(200)
  expect((await fetch(`${there.url}/ask/Lima`, { headers })).status).toBe(402)
  const walletId = wallet.id
  const check = { sessionToken: token, host: new URL(here.url).host, walletId }
  expect(await purser.sessions.verify(check)).toMatchObject({ isExpired: false })
  const refused = purser.sessions.verify({ ...check, host: new URL(there.url).host })
  await expect(refused).rejects.toBeInstanceOf(PaymentRefusedError)
  await expect(refused).rejects.toMatchObject({ code: 'session-not-found' })
})
