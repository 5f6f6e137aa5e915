import { discovery, payMiddleware, walletMiddleware } from '@purser/sdk/express'
import type { Express } from 'express'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aTempoWallet } from '../../server/test/tempo-payer.ts'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { fundToken, tokenBalance } from '../src/faucet.ts'
import { logsOf } from './official-ledger.ts'
import { openFaucetNode, type Validation, validate } from './official-validate.ts'
import { expressShop } from './paid-shops.ts'

const rawPrice = 10_000n

let tempo: DevChain
let base: DevChain
let world: World
let org: Org

beforeAll(async () => {
  tempo = await startChain({ network: 'tempo-moderato' })
  base = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [tempo, base] })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
  await tempo?.stop()
})

test('mppx validate reports no failure of a Tempo shop behind our Express middleware, and pays it', async () => {
  const wallet = await aTempoWallet(world, org)
  const node = await openFaucetNode(tempo)
  const shop = await openShop(wallet.id)
  try {
    const validation = await validate(shop.url, { nodes: { 'rpc.moderato.tempo.xyz': node.url } })

    expectPerfect(validation)
    expect(await tokenBalance(tempo, 'pathUSD', wallet.address)).toBe(rawPrice)
    expect(await logsOf(world, org, wallet.id)).toMatchObject([{ status: 'settled', protocol: 'mpp' }])
    expect(shop.served).toHaveLength(1)
    expect(shop.faults).toEqual([])
  } finally {
    await shop.stop()
    await node.stop()
  }
})

test('mppx validate reports no failure of an evm/charge shop with x402 beside it, and pays it', async () => {
  const wallet = await world.wallet(org)
  const privateKey = generatePrivateKey()
  const { address } = privateKeyToAccount(privateKey)
  await fundToken(base, 'USDC', address, 1_000_000n)
  const shop = await openShop(wallet.id)
  try {
    const validation = await validate(shop.url, { nodes: { 'sepolia.base.org': base.rpcUrl }, privateKey })

    expectPerfect(validation)
    expect(labelsOf(validation)).toContain('x402 payment challenge')
    expect(await tokenBalance(base, 'USDC', wallet.address)).toBe(rawPrice)
    expect(shop.served).toEqual([address])
    expect(shop.faults).toEqual([])
  } finally {
    await shop.stop()
  }
})

function openShop(walletId: string) {
  const free = (app: Express) => {
    const pay = payMiddleware({ price: '0.01', description: 'A report' })
    const routes = [{ method: 'GET', path: '/report', handler: pay }]
    const serviceInfo = { categories: ['data'], docs: { llms: '/llms.txt' } }
    const wallet = { apiKey: org.testKey, baseUrl: world.base, walletId }
    app.get('/openapi.json', walletMiddleware(wallet), discovery({ routes, serviceInfo }))
    app.get('/llms.txt', (_req, res) => void res.type('text/plain').send('# A shop\n\nGET /report sells a report.\n'))
  }
  return expressShop({ apiKey: org.testKey, baseUrl: world.base, walletId, free })
}

function expectPerfect({ exitCode, report }: Validation): void {
  const { discovery, endpoints, summary } = report
  const checks = [
    ...discovery.checks,
    ...endpoints.flatMap((one) => [...one.challenge, ...one.errorHandling, ...one.payment]),
  ]
  expect(checks.filter(({ severity }) => severity !== 'pass')).toEqual([])
  expect(summary).toEqual({ passed: checks.length, failed: 0, warnings: 0, suggested: 0, skipped: 0 })
  expect(endpoints.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /report'])
  expect(checks.map(({ label }) => label)).toContain('Payment: successful')
  expect(exitCode).toBe(0)
  console.log(`mppx validate: ${summary.passed} checks passed, ${summary.failed} failed`)
}

function labelsOf({ report }: Validation): string[] {
  return report.endpoints.flatMap(({ challenge }) => challenge.map(({ label }) => label))
}
