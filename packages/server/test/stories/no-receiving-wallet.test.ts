import { readFileSync } from 'node:fs'
import path from 'node:path'
import { sandboxBridgeAddress, sandboxPoolAddress, tokenBalance } from '@purser/devnet'
import { type Address, multicall3Address, networks, permit2Address } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { NewWithdrawal } from '../../src/features/withdrawals/withdraw/schema.ts'
import { createWithdrawal } from '../../src/features/withdrawals/withdraw/withdraw.ts'
import type { Ctx, Deps } from '../../src/modules.ts'
import type { OffRamp } from '../../src/partners/offramp/port.ts'
import { newId } from '../../src/platform/ids.ts'
import { EvmAddress } from '../../src/platform/wire.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { aPartner } from '../off-ramp-partner.ts'
import { aPartnerStage, bridgeOf, type Managed, type PartnerStage, swapOf } from '../partner-stage.ts'
import { codeOf } from '../world.ts'

let stage: PartnerStage
let master: Managed

beforeAll(async () => {
  stage = await aPartnerStage()
  master = await stage.aMaster()
  expect((await stage.world.call(stage.org.testKey, 'POST', '/wallets', { coin: 'USDC' })).status).toBe(201)
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

/** Addresses at which money is lost, of every kind that the service knows. */
const places = (): readonly string[] => [
  ...new Set(networks.flatMap(({ tokens }) => tokens.map(({ address }) => address))),
  ...[multicall3Address, permit2Address, sandboxPoolAddress, sandboxBridgeAddress],
  ...[stage.world.server.settlerAddress, `0x${'0'.repeat(36)}dead`],
]

const call = (route: string, body: unknown) => stage.world.call(stage.org.testKey, 'POST', route, body)

/** The fields of requests that name a receiving address, each with a request. */
const entryPoints: Readonly<Record<string, readonly [string, (address: string) => unknown][]>> = {
  'NewByoWallet.address': [
    ['/wallet-infra/byo-wallets', (address) => ({ address, chain: 'base', supportedTokens: ['USDC'] })],
  ],
  'NewTransfer.toAddress': [
    ['/wallet-infra/transfer', (toAddress) => bridgeOf(master, { toChain: 'base', amount: '1', toAddress })],
    ['/wallet-infra/transfer', (toAddress) => bridgeOf(master, { amount: '1', toAddress })],
    ['/wallet-infra/transfer', (toAddress) => swapOf(master, { toAddress })],
  ],
  'NewTransferQuote.toAddress': [
    ['/wallet-infra/transfer/quote', (toAddress) => bridgeOf(master, { amount: '1', toAddress })],
  ],
  'NewLegacyWithdrawal.to': [['/wallets/withdraw', (to) => ({ to, amount: '1', coin: 'USDC' })]],
}

test('these are all the fields of requests that name a receiving address', () => {
  const { example } = EvmAddress.meta() ?? {}
  const file = path.resolve(import.meta.dirname, '../../../../openapi.json')
  const { components } = JSON.parse(readFileSync(file, 'utf8'))
  const found = Object.entries<{ properties?: Record<string, { example?: unknown }> }>(components.schemas).flatMap(
    ([name, { properties = {} }]) =>
      name.startsWith('New')
        ? Object.entries(properties).flatMap(([field, schema]) =>
            schema.example === example ? [`${name}.${field}`] : [],
          )
        : [],
  )
  expect(found.toSorted()).toEqual(Object.keys(entryPoints).toSorted())
})

test.each(Object.entries(entryPoints))(
  'a token or a contract or account of the service is refused as %s',
  async (entryPoint, requests) => {
    const field = `/${entryPoint.split('.')[1]}`
    for (const [route, bodyOf] of requests) {
      const answers = await Promise.all(places().map((address) => call(route, bodyOf(address))))
      for (const [index, response] of answers.entries()) {
        expect([places()[index], response.status, codeOf(response)]).toEqual([places()[index], 422, 'validation-error'])
        expect(response.body.errors).toMatchObject([{ path: field }])
      }
    }
    expect(await stage.countOf(master)).toBe(0)
  },
)

function ctxWith(partner: OffRamp): Ctx {
  const deps: Deps = { ...stage.world.server.deps, offRamps: { test: partner, live: undefined } }
  const tenant = { organisationId: stage.org.id, environment: 'test' } as const
  return { ...forTenant(systemCtx(deps), tenant), requestId: newId('req', deps) }
}

test('a payout whose partner names such an address for the tokens gets nothing', async () => {
  const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }
  const bankAccountId = String((await call('/wallet-infra/bank-accounts', gbp)).body.id)
  const rawAmount = 50_000_000n
  const body = { fromWalletId: master.id, token: 'USDC', chain: 'base', amount: '50', bankAccountId }
  for (const address of places().slice(-6)) {
    const { partner } = aPartner({ payout: () => ({ deposit: { address: address as Address, rawAmount } }) })
    const made = createWithdrawal(ctxWith(partner), NewWithdrawal.parse(body))
    await expect(made, address).rejects.toMatchObject({
      code: 'withdrawal-refused',
    })
  }
  expect([await stage.countOf(master), await tokenBalance(stage.base, 'USDC', master.address)]).toEqual([
    0,
    100_000_000n,
  ])
})
