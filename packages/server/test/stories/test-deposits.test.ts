import { type DevChain, fundFees, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let base: DevChain
let tempo: DevChain
let world: World
let org: Org
const testFaucetKey = generatePrivateKey()
const faucet = privateKeyToAddress(testFaucetKey)

beforeAll(async () => {
  ;[base, tempo] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'tempo-moderato' }),
  ])
  for (const chain of [base, tempo]) await fundFees(chain, faucet)
  await fundToken(base, 'USDC', faucet, 100_000_000n)
  await fundToken(tempo, 'pathUSD', faucet, 100_000_000n)
  world = await aWorld({ chains: [base, tempo], config: { testFaucetKey }, boot: { depositPollMsMax: 200 } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([base?.stop(), tempo?.stop()])
})

const deposit = (body: object, key = org.testKey, headers: Record<string, string> = {}): Promise<Answer> =>
  world.call(key, 'POST', '/test/deposits', { token: 'USDC', amount: '1.5', ...body }, headers)

/** Amounts of a wallet's deposit events, the oldest first. */
async function reported(walletId: string): Promise<readonly unknown[]> {
  const { list } = await world.call(org.testKey, 'GET', '/events?limit=500')
  return list
    .filter(({ type, payload }) => type === 'deposit.success' && Object(payload).walletId === walletId)
    .map(({ payload }) => [Object(payload).amount, Object(payload).tokenSymbol, Object(payload).from])
    .reverse()
}

async function aMaster(chain: string, token: string): Promise<{ readonly id: string; readonly address: Address }> {
  const body = { chain, supportedTokens: [token] }
  const made = await world.call(org.testKey, 'POST', '/wallet-infra/master-wallets', body)
  return { id: String(made.body.id), address: made.body.address as Address }
}

test('a test deposit is real money on the test chain, and is published like any other', async () => {
  const byo = await world.wallet(org)
  const master = await aMaster('base', 'USDC')
  for (const { id, address } of [byo, master]) {
    const sent = await deposit({ walletId: id })
    expect([sent.status, sent.body]).toEqual([
      202,
      expect.objectContaining({
        walletId: id,
        amount: '1.5',
        token: 'USDC',
        from: faucet,
        to: address,
        status: 'queued',
      }),
    ])
    await expect.poll(() => reported(id), { timeout: 60_000 }).toEqual([['1.5', 'USDC', faucet]])
    expect(await tokenBalance(base, 'USDC', address)).toBe(1_500_000n)
  }
})

test('a test deposit on Tempo is reported', async () => {
  const master = await aMaster('tempo', 'pathUSD')
  expect((await deposit({ walletId: master.id, token: 'pathUSD', amount: '2' })).status).toBe(202)
  await expect.poll(() => reported(master.id), { timeout: 60_000 }).toEqual([['2', 'pathUSD', faucet]])
})

test('the coin of the chain pays for the gas of a wallet, so that a new managed wallet can send', async () => {
  const master = await aMaster('base', 'USDC')
  await deposit({ walletId: master.id })
  const sent = await deposit({ walletId: master.id, token: 'ETH', amount: '0.01' })
  expect([sent.status, sent.body]).toEqual([
    202,
    expect.objectContaining({ token: 'ETH', amount: '0.01', from: faucet }),
  ])
  const balance = async () =>
    (await world.call(org.testKey, 'GET', `/wallet-infra/master-wallets/${master.id}/balances`)).list
  await expect
    .poll(balance, { timeout: 60_000 })
    .toContainEqual(expect.objectContaining({ tokenSymbol: 'ETH', formattedBalance: '0.01' }))
  const body = {
    fromWalletId: master.id,
    fromToken: 'USDC',
    toToken: 'USDC',
    toChain: 'base',
    amount: '1',
    toAddress: faucet,
  }
  await expect
    .poll(async () => (await world.call(org.testKey, 'POST', '/wallet-infra/transfer', body)).status, {
      timeout: 60_000,
    })
    .toBe(201)
})

test('a deposit of the coin is at most a tenth of it, and Tempo has none', async () => {
  const { id: walletId } = await aMaster('base', 'USDC')
  expect(codeOf(await deposit({ walletId, token: 'ETH', amount: '0.11' }))).toBe('validation-error')
  const tempoWallet = await aMaster('tempo', 'pathUSD')
  expect(codeOf(await deposit({ walletId: tempoWallet.id, token: 'ETH', amount: '0.01' }))).toBe('token-not-supported')
})

test('a repeat under one key sends nothing more, and concurrent deposits at two processes all arrive', async () => {
  const master = await aMaster('base', 'USDC')
  const once = { 'idempotency-key': 'deposit-1' }
  const repeats = await Promise.all(
    Array.from({ length: 4 }, () => deposit({ walletId: master.id, amount: '5' }, org.testKey, once)),
  )
  expect(countByStatus(repeats)[202]).toBeGreaterThan(0)
  expect(
    (await deposit({ walletId: master.id, amount: '5' }, org.testKey, once)).headers.get('idempotency-replayed'),
  ).toBe('true')
  const other = await world.another()
  const body = { walletId: master.id, token: 'USDC', amount: '0.25' }
  const sent = await Promise.all(
    [world.base, other.base].flatMap((at) =>
      Array.from({ length: 4 }, () => request(at, { key: org.testKey, method: 'POST', path: '/test/deposits', body })),
    ),
  )
  expect(countByStatus(sent)).toEqual({ 202: 8 })
  await expect.poll(async () => (await reported(master.id)).length, { timeout: 60_000 }).toBe(9)
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(7_000_000n)
  await other.server.stop()
})

test('live keys, other organisations’ wallets, unknown tokens and invalid amounts are refused, and nothing is sent', async () => {
  const { id: walletId } = await world.wallet(org)
  const before = await tokenBalance(base, 'USDC', faucet)
  const other = await world.organisation()
  const codes = [
    await deposit({ walletId }, org.liveKey),
    await deposit({ walletId }, other.testKey),
    await deposit({ walletId, token: 'DOGE' }),
    await deposit({ walletId, amount: '0' }),
    await deposit({ walletId, amount: '-1' }),
    await deposit({ walletId, amount: '0.0000001' }),
    await deposit({ walletId, amount: '10000.1' }),
    await deposit({ walletId, amount: '9999' }),
  ].map((response) => [response.status, codeOf(response)])
  expect(codes).toEqual([
    [403, 'test-deposits-off'],
    [422, 'wallet-not-found'],
    [422, 'token-not-supported'],
    [422, 'validation-error'],
    [422, 'validation-error'],
    [422, 'validation-error'],
    [422, 'validation-error'],
    [503, 'faucet-empty'],
  ])
  expect(await tokenBalance(base, 'USDC', faucet)).toBe(before)
})

const pay = (body: object, key = org.testKey, headers: Record<string, string> = {}): Promise<Answer> =>
  world.call(key, 'POST', '/test/payments', body, headers)

test('a test payment is signed by the faucet, verified and settled on chain as one from a client is', async () => {
  for (const { id: walletId, address } of [await world.wallet(org), await aMaster('base', 'USDC')]) {
    const made = await pay({ walletId, price: '0.25' })
    expect([made.status, made.body]).toEqual([
      201,
      expect.objectContaining({ amount: '0.25', token: 'USDC', protocol: 'x402', payer: faucet, walletId }),
    ])
    expect(['settling', 'settled']).toContain(made.body.status)
    const settled = async () => (await world.call(org.testKey, 'GET', `/payments/${made.body.id}`)).body
    await expect.poll(settled, { timeout: 60_000 }).toMatchObject({ status: 'settled', txHash: expect.any(String) })
    expect(await tokenBalance(base, 'USDC', address as Address)).toBe(250_000n)
  }
})

test('a repeat of a test payment under one key pays once', async () => {
  const { id: walletId, address } = await aMaster('base', 'USDC')
  const once = { 'idempotency-key': 'payment-1' }
  const answers = await Promise.all(Array.from({ length: 4 }, () => pay({ walletId }, org.testKey, once)))
  const ids = new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id))
  expect(ids.size).toBe(1)
  expect((await pay({ walletId }, org.testKey, once)).headers.get('idempotency-replayed')).toBe('true')
  const [paymentId] = ids
  const status = async () => (await world.call(org.testKey, 'GET', `/payments/${paymentId}`)).body.status
  await expect.poll(status, { timeout: 60_000 }).toBe('settled')
  expect(await tokenBalance(base, 'USDC', address)).toBe(10_000n)
})

test('a test payment is refused to live keys, from others’ wallets, on Tempo and above a dollar; the faucet keeps its money', async () => {
  const { id: walletId } = await world.wallet(org)
  const tempoWallet = await aMaster('tempo', 'pathUSD')
  const other = await world.organisation()
  const before = await tokenBalance(base, 'USDC', faucet)
  const codes = [
    await pay({ walletId }, org.liveKey),
    await pay({ walletId }, other.testKey),
    await pay({ walletId: tempoWallet.id }),
    await pay({ walletId, price: '1.01' }),
    await pay({ walletId, price: '0' }),
  ].map((response) => [response.status, codeOf(response)])
  expect(codes).toEqual([
    [403, 'test-payments-off'],
    [422, 'wallet-not-found'],
    [422, 'chain-not-supported'],
    [422, 'validation-error'],
    [422, 'validation-error'],
  ])
  expect(await tokenBalance(base, 'USDC', faucet)).toBe(before)
})

test('without a faucet there are no test deposits and no test payments', async () => {
  const { id: walletId } = await world.wallet(org)
  const without = await world.another({ testFaucetKey: undefined, role: 'api' })
  const body = { walletId, token: 'USDC', amount: '1' }
  const refused = await request(without.base, { key: org.testKey, method: 'POST', path: '/test/deposits', body })
  expect([refused.status, codeOf(refused)]).toEqual([403, 'test-deposits-off'])
  const path = '/test/payments'
  const unpaid = await request(without.base, { key: org.testKey, method: 'POST', path, body: { walletId } })
  expect([unpaid.status, codeOf(unpaid)]).toEqual([403, 'test-payments-off'])
  await without.server.stop()
})
