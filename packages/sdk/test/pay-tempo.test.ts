import { type DevChain, fundFees, startChain, tokenBalance } from '@purser/devnet'
import { Mppx, Store, tempo } from 'mppx/server'
import { concat, createClient, createWalletClient, http, publicActions, slice } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { prepareTransactionRequest, signTransaction } from 'viem/actions'
import { tempoModerato } from 'viem/tempo/chains'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPayingFetch, PaymentRejectedError, paymentOf, type Signer } from '../src/pay/index.ts'
import { errorOf, must, serve } from './pay-stage.ts'

const payer = privateKeyToAccount(generatePrivateKey())
const sponsor = privateKeyToAccount(generatePrivateKey())
const receiver = privateKeyToAccount(generatePrivateKey()).address
let chain: DevChain

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  await fundFees(chain, payer.address)
  await fundFees(chain, sponsor.address)
})

afterAll(() => chain.stop())

const client = () => createClient({ account: payer, chain: tempoModerato, transport: http(chain.rpcUrl) })

/** As docs/paying.md shows it: the transaction that the seller broadcasts. */
const signTempoTransaction: NonNullable<Signer['signTempoTransaction']> = async ({
  calls,
  feePayer,
  validBeforeSeconds,
}) => {
  const request = { calls: [...calls], nonceKey: 'expiring', validBefore: validBeforeSeconds } as const
  const prepared = await prepareTransactionRequest(client(), request)
  prepared.gas = (prepared.gas ?? 0n) + 5_000n
  if (!feePayer) return signTransaction(client(), prepared)
  const { feeToken, ...sponsored } = prepared
  return signTransaction(client(), { ...sponsored, feePayer: true })
}

/** Pays by push: the payer sends a plain EIP-1559 transaction. */
const sendTransaction: NonNullable<Signer['sendTransaction']> = async ({ to, data }) => {
  const wallet = createWalletClient({ account: payer, chain: tempoModerato, transport: http(chain.rpcUrl) })
  const hash = await wallet.sendTransaction({ to, data, type: 'eip1559' })
  await wallet.extend(publicActions).waitForTransactionReceipt({ hash, pollingInterval: 50 })
  return hash
}

async function shop(amount: string, options: { sponsored?: boolean; mode?: 'pull' | 'push' } = {}): Promise<string> {
  const charge = tempo.charge({
    currency: must(chain.tokens.pathUSD),
    recipient: receiver,
    testnet: true,
    getClient: () => createClient({ chain: tempoModerato, transport: http(chain.rpcUrl) }),
    store: Store.memory(),
    ...(options.sponsored ? { account: sponsor, feePayer: true } : {}),
    ...(options.mode === undefined ? {} : { supportedModes: [options.mode] }),
  })
  const server = Mppx.create({
    secretKey: 'a secret of at least thirty-two bytes',
    realm: 'seller.test',
    methods: [charge],
  })
  const listener = Mppx.toNodeListener(server.charge({ amount, description: 'Report' }))
  return serve(async (req, res) => {
    if ((await listener(req, res)).status !== 402) res.end('goods')
  })
}

function paying(abilities: Partial<Signer>) {
  const signer = { address: payer.address, signTypedData: payer.signTypedData, ...abilities }
  return createPayingFetch({ signer, limits: { perCall: '0.05', networks: ['tempo-moderato'] } })
}

const balances = async () => [
  await tokenBalance(chain, 'pathUSD', payer.address),
  await tokenBalance(chain, 'pathUSD', receiver),
]

test.each([
  ['pull', { signTempoTransaction }, {}],
  ['push', { sendTransaction }, { mode: 'push' }],
] as const)('the official mppx server is paid by %s, and the money has arrived', async (_how, abilities, options) => {
  const url = await shop('0.05', options)
  const [, before = 0n] = await balances()
  const response = await paying(abilities)(url)
  expect(await response.text()).toBe('goods')
  const [, after = 0n] = await balances()
  expect(after - before).toBe(50_000n)
  expect(paymentOf(response)).toMatchObject({
    method: 'mpp/tempo-charge',
    amountUsd: '0.05',
    token: 'pathUSD',
    txHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    receipt: { status: 'success', method: 'tempo' },
  })
})

test('a sponsored charge costs its payer the price and no fee', async () => {
  const url = await shop('0.05', { sponsored: true })
  const [before = 0n] = await balances()
  expect(await (await paying({ signTempoTransaction })(url)).text()).toBe('goods')
  const [after = 0n] = await balances()
  expect(before - after).toBe(50_000n)
})

test('what costs nothing is paid by a proof, with no transaction', async () => {
  const url = await shop('0')
  const before = await balances()
  const response = await paying({})(url)
  expect(await response.text()).toBe('goods')
  expect(await balances()).toEqual(before)
  expect(paymentOf(response)).toMatchObject({ amountUsd: '0', outcome: 'paid' })
})

test('the official server refuses a transaction with another memo before broadcasting it, and its reason is reported', async () => {
  const url = await shop('0.05')
  const before = await balances()
  const forgetful: typeof signTempoTransaction = ({ calls, ...request }) => {
    const unbound = calls.map(({ to, data }) => ({ to, data: concat([slice(data, 0, -7), '0x00000000000000']) }))
    return signTempoTransaction({ ...request, calls: unbound })
  }
  const error = await errorOf(paying({ signTempoTransaction: forgetful })(url))
  expect(error).toBeInstanceOf(PaymentRejectedError)
  expect(error).toMatchObject({ status: 402, reason: 'verification-failed', detail: expect.stringContaining('memo') })
  expect(await balances()).toEqual(before)
})
