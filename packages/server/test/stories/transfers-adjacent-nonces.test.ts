import { type Address, encodeTransfer, networkByName, tokenBySymbol } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Chain } from '../../src/chain/port.ts'
import type { Coin } from '../../src/features/funds/index.ts'
import { isProblem } from '../../src/platform/errors.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { aMaster, aTransferStage, type Managed, stranger, type TransferStage, untilBooked } from '../transfer-stage.ts'

const network = networkByName('base')
if (network === undefined || network.nativeCoin === null) throw new Error('no such network')
const eth: Coin = { ...network.nativeCoin, address: undefined }
const usdc = tokenBySymbol(network, 'USDC')
if (usdc === undefined) throw new Error('no such token')

let stage: TransferStage
let chain: Chain

beforeAll(async () => {
  stage = await aTransferStage()
  chain = stage.world.server.deps.chains.on(network)
})
afterEach(() => stage.node.tellTheTruth())
afterAll(() => stage?.stop())

async function funds({ id }: Managed, coin: Coin) {
  const { deps } = stage.world.server
  const ctx = forTenant(systemCtx(deps), { organisationId: stage.org.id, environment: 'live' })
  const source = await deps.findSource(deps.db, ctx.tenant, id)
  if (source === undefined || network === undefined) throw new Error('no such wallet')
  const place = { tenant: ctx.tenant, network, walletId: source.id, owner: source.address, coin }
  return () => deps.readFunds(network, [place])
}

test('a call that a node never completes delays no other transfer at the same time', async () => {
  const [from, endless] = [await aMaster(stage), stranger()]
  stage.node.lie('eth_estimateGas', ({ params: [call], truth }) =>
    JSON.stringify(call).toLowerCase().includes(endless.toLowerCase()) ? new Promise(() => undefined) : truth(),
  )
  const call = (to: Address) => ({ from: from.address, to: usdc.address, data: encodeTransfer(to, 1n), value: 0n })
  const hanging = chain.tryCall({ from: from.address, to: endless, data: '0x', value: 1n }).catch((error) => error)
  const tried = await Promise.all([stranger(), stranger()].map((to) => chain.tryCall(call(to))))
  expect(tried.map(({ ok }) => ok)).toEqual([true, true])
  expect(isProblem(await hanging, 'chain-unavailable')).toBe(true)
})

test('a token that stops answering delays no transfer of another token', async () => {
  const [tokens, coins] = [await aMaster(stage), await aMaster(stage)]
  const reads = [await funds(tokens, usdc), await funds(coins, eth)]
  await stage.chain.setCode({ address: usdc.address, bytecode: '0x' })
  await untilBooked(stage.world, stage.dev)
  const [unknown, known] = await Promise.allSettled(reads.map((read) => read()))
  expect(unknown?.status === 'rejected' && isProblem(unknown.reason, 'chain-unavailable')).toBe(true)
  expect(known?.status === 'fulfilled' && known.value.spendable[0]?.available).toBe(10n ** 18n)
})
