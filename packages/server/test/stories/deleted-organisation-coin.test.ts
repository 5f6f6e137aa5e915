import { type DevChain, fundNative, startChain } from '@purser/devnet'
import { type Address, requireNetwork } from '@purser/protocol'
import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fail as failChain } from '../../src/chain/errors.ts'
import { aBrowser, ownerOf } from '../people.ts'
import { createFakeScreening } from '../screening-double.ts'
import { path, stranger } from '../transfer-stage.ts'
import { aWorld, codeOf, type World } from '../world.ts'

let chain: DevChain
let world: World

beforeAll(async () => {
  chain = await startChain({ network: 'ethereum' })
  world = await aWorld({
    chains: [chain],
    config: { rpcTimeoutMs: 3_000, transferWaitMs: 20_000 },
    boot: { screening: createFakeScreening(() => new Date()) },
  })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

/** An organisation with a live legacy wallet, and its owner's deletion of it. */
async function withLegacyWallet() {
  const org = await world.organisation()
  const live = (method: string, to: string, body?: unknown) => world.call(org.liveKey, method, to, body)
  const { body } = await live('POST', '/wallets', { coin: 'USDC' })
  const owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  const remove = () => owner.call('DELETE', `/organisations/${org.id}`)
  return { id: String(body.id), address: body.address as Address, live, remove }
}

test('coin of a live legacy wallet keeps the organisation, until it is moved and costs more to move than it is worth', async () => {
  const { id, address, live, remove } = await withLegacyWallet()
  await fundNative(chain, address, 10n ** 18n)
  const refused = await remove()
  expect([refused.status, codeOf(refused)]).toEqual([409, 'organisation-not-empty'])
  expect(refused.body.blockers).toEqual([{ kind: 'wallets', count: 1, ids: [id] }])
  const coin = { fromWalletId: id, fromToken: 'ETH', toToken: 'ETH', toChain: 'ethereum', toAddress: stranger() }
  const moved = await live('POST', path, { ...coin, amount: '0.9' })
  expect([moved.status, codeOf(moved)]).toEqual([201, ''])
  await fundNative(chain, address, 21_000n)
  const node = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  const poll = async () => {
    await node.mine({ blocks: 1 })
    return (await remove()).status
  }
  await expect.poll(poll, { timeout: 60_000, interval: 200 }).toBe(204)
})

test('an organisation whose legacy wallet cannot be read is not deleted, and one without such a wallet is', async () => {
  const [{ remove }, none] = [await withLegacyWallet(), await world.organisation()]
  const { chains } = world.server.deps
  const ethereum = chains.on(requireNetwork('ethereum'))
  const { agreedHoldings } = ethereum
  const broken = ethereum as { agreedHoldings: typeof agreedHoldings }
  broken.agreedHoldings = () => Promise.reject(failChain('chain-unavailable'))
  const owner = await aBrowser(world, { email: await ownerOf(world, none.id), organisationId: none.id })
  expect(codeOf(await remove())).toBe('chain-unavailable')
  expect((await owner.call('DELETE', `/organisations/${none.id}`)).status).toBe(204)
  broken.agreedHoldings = agreedHoldings
  expect((await remove()).status).toBe(204)
})
