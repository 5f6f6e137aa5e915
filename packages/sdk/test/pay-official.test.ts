import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { networks } from '@purser/protocol'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme as FacilitatorScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme as ServerScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import express from 'express'
import { evm, Mppx } from 'mppx/server'
import {
  type Account,
  type Chain,
  createPublicClient,
  createWalletClient,
  http,
  publicActions,
  type Transport,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { settle } from 'x402/facilitator'
import { decodePayment } from 'x402/schemes'
import { createPayingFetch, type PaymentRecord, paymentOf } from '../src/pay/index.ts'
import { close, listen } from './fake-purser.ts'
import { account, bodyOf, must, payTo, serve, usdc } from './pay-stage.ts'

const settler = privateKeyToAccount(generatePrivateKey())
let chain: DevChain

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  await fundNative(chain, settler.address, 10n ** 18n)
  await fundToken(chain, 'USDC', account.address, 1_000_000n)
})

afterAll(() => chain.stop())

function paying() {
  const records: PaymentRecord[] = []
  const onPayment = (record: PaymentRecord) => void records.push(record)
  return { records, pay: createPayingFetch({ signer: account, limits: { perCall: '0.01', perDay: '1' }, onPayment }) }
}

/** The increase of the receiver's balance. */
async function earned<T>(run: () => Promise<T>): Promise<{ result: T; units: bigint }> {
  const before = await tokenBalance(chain, 'USDC', payTo)
  const result = await run()
  return { result, units: (await tokenBalance(chain, 'USDC', payTo)) - before }
}

/** The official facilitator's own classes, on the local chain. */
function officialFacilitator(): x402Facilitator {
  const transport = http(chain.rpcUrl)
  const reads = createPublicClient({ chain: baseSepolia, transport, pollingInterval: 20 })
  const writes = createWalletClient({ account: settler, chain: baseSepolia, transport })
  const signer = toFacilitatorEvmSigner({
    address: settler.address,
    getCode: (args) => reads.getCode(args),
    readContract: (args) => reads.readContract({ ...args, args: args.args ?? [] }),
    verifyTypedData: () => Promise.reject(new Error('not expected')),
    writeContract: (args) => writes.writeContract(args),
    sendTransaction: (args) => writes.sendTransaction(args),
    waitForTransactionReceipt: (args) => reads.waitForTransactionReceipt(args),
  })
  return new x402Facilitator().register('eip155:84532', new FacilitatorScheme(signer))
}

async function officialShop(): Promise<string> {
  const facilitator = officialFacilitator()
  const kind = { x402Version: 2, scheme: 'exact', network: 'eip155:84532' } as const
  const server = new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => ({ kinds: [kind], extensions: [], signers: {} }),
  }).register('eip155:84532', new ServerScheme())
  const accepts = { scheme: 'exact', network: 'eip155:84532', price: '$0.01', payTo } as const
  const app = express()
  app.use(
    paymentMiddleware({ 'POST /report': { accepts, description: 'Report', mimeType: 'application/json' } }, server),
  )
  app.post('/report', async (req, res) => void res.json({ report: (await bodyOf(req)).toString() }))
  const http1 = createServer(app)
  const url = await listen(http1)
  closings.push(() => close(http1))
  return url
}

const closings: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const closing of closings) await closing()
})

test('the official x402 Express server and facilitator take the payment, once, and the receipt is read', async () => {
  const shop = await officialShop()
  const { pay, records } = paying()
  const { result: response, units } = await earned(() => pay(`${shop}/report`, { method: 'POST', body: 'weather' }))
  expect(await response.json()).toEqual({ report: 'weather' })
  expect(units).toBe(10_000n)
  expect(paymentOf(response)).toMatchObject({
    outcome: 'paid',
    method: 'x402/v2',
    amountUsd: '0.01',
    txHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    receipt: { success: true, payer: account.address, network: 'eip155:84532' },
  })
  expect(records).toEqual([paymentOf(response)])
})

test('the official version 1 facilitator settles what is signed for a version 1 challenge', async () => {
  const settings: { account: Account; chain: Chain; transport: Transport } = {
    account: settler,
    chain: baseSepolia,
    transport: http(chain.rpcUrl),
  }
  const client = createWalletClient(settings).extend(publicActions)
  const accepted = {
    scheme: 'exact',
    network: 'base-sepolia',
    maxAmountRequired: '10000',
    resource: 'http://127.0.0.1/report',
    description: '',
    mimeType: 'text/plain',
    payTo,
    maxTimeoutSeconds: 60,
    asset: usdc.address,
    extra: { ...usdc.eip712 },
  } as const
  const url = await serve(async (req, res) => {
    const payment = req.headers['x-payment']
    if (typeof payment !== 'string') {
      return void res.writeHead(402).end(JSON.stringify({ x402Version: 1, error: 'pay', accepts: [accepted] }))
    }
    const settled = await settle(client, decodePayment(payment), accepted)
    res.writeHead(200, { 'X-PAYMENT-RESPONSE': Buffer.from(JSON.stringify(settled)).toString('base64') }).end('goods')
  })
  const { result: response, units } = await earned(() => paying().pay(url))
  expect(await response.text()).toBe('goods')
  expect(units).toBe(10_000n)
  expect(paymentOf(response)).toMatchObject({ method: 'x402/v1', receipt: { success: true, network: 'base-sepolia' } })
})

const reference = `0x${'cd'.repeat(32)}` as const

/** The official mppx server, with `evm/charge` whose settlement costs nothing. */
function mppxServer(network: (typeof networks)[number]) {
  const token = must(network.tokens.find(({ eip3009 }) => eip3009))
  return Mppx.create({
    secretKey: 'a secret of at least thirty-two bytes',
    realm: 'seller.test',
    methods: [
      evm.charge({
        currency: token.address,
        recipient: payTo,
        chainId: network.chainId,
        decimals: token.decimals,
        authorization: must(token.eip712),
        settle: async () => ({ reference }),
        x402: { facilitator: { verify: neverRequested, settle: neverRequested } },
      }),
    ],
  })
}

async function neverRequested(): Promise<never> {
  throw new Error('no payment comes by x402 here')
}

function selling(charge: (req: IncomingMessage, res: ServerResponse) => Promise<{ status: number }>) {
  return serve(async (req, res) => {
    if ((await charge(req, res)).status !== 402) res.end('goods')
  })
}

const evmNetworks = networks.filter(({ settlesEip3009 }) => settlesEip3009).map(({ name }) => name)

test.each(evmNetworks)('the official mppx server takes an evm/charge on %s', async (name) => {
  const network = must(networks.find((each) => each.name === name))
  const server = mppxServer(network)
  const handler = server.compose(['evm/charge', { amount: '0.01', description: 'Päper – “report”' }])
  const url = await selling(Mppx.toNodeListener(handler))
  const pay = createPayingFetch({ signer: account, limits: { perCall: '0.01' }, prefer: ['mpp'] })
  const response = await pay(url)
  expect(await response.text()).toBe('goods')
  expect(paymentOf(response)).toMatchObject({
    method: 'mpp/evm-charge',
    network: name,
    txHash: reference,
    receipt: { status: 'success', method: 'evm' },
  })
})

test('one 402 of the official mppx server, with both protocols in it, is paid by the one that the caller prefers', async () => {
  const server = mppxServer(must(networks.find(({ name }) => name === 'base-sepolia')))
  const url = await selling(Mppx.toNodeListener(server.compose(['evm/charge', { amount: '0.01' }])))
  for (const [protocol, method] of [
    ['x402', 'x402/v2'],
    ['mpp', 'mpp/evm-charge'],
  ] as const) {
    const response = await createPayingFetch({ signer: account, limits: { perCall: '0.01' }, prefer: [protocol] })(url)
    expect(await response.text()).toBe('goods')
    expect(paymentOf(response)).toMatchObject({ protocol, method, txHash: reference })
  }
})

test('the official mppx server refuses the signature of another account, and its reason is reported', async () => {
  const server = mppxServer(must(networks.find(({ name }) => name === 'base-sepolia')))
  const url = await selling(Mppx.toNodeListener(server.compose(['evm/charge', { amount: '0.01' }])))
  const signer = { address: payTo, signTypedData: account.signTypedData }
  const pay = createPayingFetch({ signer, limits: { perCall: '0.01' }, prefer: ['mpp'] })
  await expect(pay(url)).rejects.toMatchObject({
    code: 'payment-rejected',
    reason: 'verification-failed',
    detail: expect.stringContaining('signature mismatch'),
  })
})
