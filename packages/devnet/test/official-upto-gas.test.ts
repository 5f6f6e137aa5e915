import type { PaymentRequirements } from '@x402/core/types'
import { type Address, createPublicClient, createTestClient, type Hex, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Network } from '../../protocol/src/index.ts'
import { type Facilitator, facilitatorOf } from '../../server/test/facilitated.ts'
import { aWorld, type World } from '../../server/test/world.ts'
import { type DevChain, startChain, tokenBalance } from '../src/index.ts'
import { aPermit2Payer, type Permit2Payer, requirementsOf } from './official-permit2-payers.ts'

/** Billionths of a US dollar per gas. At 10, the least charge of an ordinary permit is 0.002 USDC. */
const usual = 10n
let nanoUsdPerGas = usual
const costOf = (_: Network, gas: bigint): bigint => gas * nanoUsdPerGas
const gasPrices = {
  costOf,
  knownCostOf: costOf,
  leastCostOf: costOf,
  lowestKnownCostOf: costOf,
  worthOf: () => 0n,
  recentReads: () => Promise.resolve(),
}

let chain: DevChain
let world: World
let facilitator: Facilitator

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], boot: { gasPrices } })
  facilitator = facilitatorOf(world.base, (await world.organisation()).testKey)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

/** A permit of at most 0.02 USDC. */
async function aPermit(payer: Permit2Payer, extensions: Record<string, unknown> = {}, amount = '20000') {
  const payTo = privateKeyToAccount(generatePrivateKey()).address
  const facilitatorAddress = world.server.settlerAddress as Address
  const requirements = requirementsOf(chain, { scheme: 'upto', amount, payTo, facilitatorAddress })
  const body = { x402Version: 2, paymentPayload: await payer.sign(requirements, extensions) }
  return {
    payTo,
    verify: async () => (await facilitator.verify({ ...body, paymentRequirements: requirements })).body,
    settle: async (change: Partial<PaymentRequirements>) =>
      (await facilitator.settle({ ...body, paymentRequirements: { ...requirements, ...change } })).body,
  }
}

/** Code of an account that accepts every signature (EIP-1271) after it has used 26 gas for each of these iterations. */
const burning = (iterations: number): Hex =>
  `0x61${iterations.toString(16).padStart(4, '0')}5b6001900380600357631626ba7e60e01b60005260206000f3`

async function aContractPayer(gas: number): Promise<Permit2Payer> {
  const payer = await aPermit2Payer(chain)
  const anvil = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  await anvil.setCode({ address: payer.address, bytecode: burning(Math.ceil(gas / 26)) })
  return payer
}

test('an upto permit that needs more than 200,000 gas is refused at verify', async () => {
  const dear = await aPermit(await aContractPayer(250_000))
  expect(await dear.verify()).toMatchObject({
    isValid: false,
    invalidMessage: 'The chain refuses the payment with the gas that the smallest charge pays for.',
  })
  const frugal = await aPermit(await aContractPayer(50_000))
  expect(await frugal.verify()).toMatchObject({ isValid: true })
  expect(await frugal.settle({ amount: '2000' })).toMatchObject({ success: true, amount: '2000' })
  expect(await tokenBalance(chain, 'USDC', frugal.payTo)).toBe(2_000n)
})

test('an upto permit that pays for less than its own settlement is refused at verify', async () => {
  expect(await (await aPermit(await aPermit2Payer(chain), {}, '1999')).verify()).toMatchObject({
    isValid: false,
    invalidReason: 'invalid_payment_requirements',
  })
  expect(await (await aPermit(await aPermit2Payer(chain), {}, '2000')).verify()).toMatchObject({ isValid: true })
})

test('a charge that was possible at verify stays possible when gas doubles', async () => {
  const [least, all] = [await aPermit(await aPermit2Payer(chain)), await aPermit(await aPermit2Payer(chain))]
  for (const { verify } of [least, all]) expect(await verify()).toMatchObject({ isValid: true })
  nanoUsdPerGas = usual * 11n
  try {
    expect(await least.settle({ amount: '1999' })).toMatchObject({
      success: false,
      errorReason: 'invalid_payment_requirements',
    })
    expect(await least.settle({ amount: '2000' })).toMatchObject({ success: true, amount: '2000' })
    expect(await all.settle({ amount: '20000' })).toMatchObject({ success: true, amount: '20000' })
  } finally {
    nanoUsdPerGas = usual
  }
})

test('a charge that is possible now is possible, also if it was not at verify', async () => {
  const permit = await aPermit(await aPermit2Payer(chain))
  expect(await permit.verify()).toMatchObject({ isValid: true })
  nanoUsdPerGas = usual / 2n
  try {
    expect(await permit.settle({ amount: '999' })).toMatchObject({ success: false })
    expect(await permit.settle({ amount: '1000' })).toMatchObject({ success: true, amount: '1000' })
  } finally {
    nanoUsdPerGas = usual
  }
})

test('a permit with an approval pays for 300,000 gas at least, and its settlement to a new receiver uses less', async () => {
  const payer = await aPermit2Payer(chain, { allowance: 0n })
  const permit = await aPermit(payer, { eip2612GasSponsoring: { info: {}, schema: {} } })
  expect(await permit.verify()).toMatchObject({ isValid: true })
  expect(await permit.settle({ amount: '2999' })).toMatchObject({ success: false })
  const settled = await permit.settle({ amount: '3000' })
  expect(settled).toMatchObject({ success: true, amount: '3000' })
  const reader = createPublicClient({ transport: http(chain.rpcUrl) })
  const { gasUsed } = await reader.getTransactionReceipt({ hash: settled.transaction as Hex })
  expect(Number(gasUsed)).toBeLessThan(300_000)
})
