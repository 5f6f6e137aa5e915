import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type World } from '../../../test/world.ts'
import { type Db, sql } from '../../platform/db/db.ts'
import { isId } from '../../platform/ids.ts'
import { createWalletDirectory, getPayableWallet, type WalletId } from './index.ts'

let world: World

beforeAll(async () => {
  world = await aWorld({ config: { sandboxScreening: false } })
})
afterAll(() => world.stop())

function walletId(text: string): WalletId {
  if (!isId('byw', text)) throw new Error('not a wallet id')
  return text
}

test('concurrent look-ups are one statement, and a wallet is found only by its own tenant', async () => {
  const [org, other] = [await world.organisation(), await world.organisation()]
  const wallets = [await world.wallet(org), await world.wallet(other)].map(({ id }) => walletId(id))
  let statements = 0
  const db: Db = {
    ...world.database.db,
    many: (row, statement) => {
      statements += 1
      return world.database.db.many(row, statement)
    },
  }
  const directory = createWalletDirectory({ db })
  const questions = [org, other].flatMap(({ id: organisationId }) =>
    (['test', 'live'] as const).flatMap((environment) =>
      wallets.map((wallet) => ({ tenant: { organisationId, environment }, wallet })),
    ),
  )
  const found = await Promise.all(questions.map(({ tenant, wallet }) => directory.find(tenant, wallet)))
  expect(statements).toBe(1)
  expect(found.map((wallet) => wallet?.id)).toEqual([
    wallets[0],
    undefined,
    undefined,
    undefined,
    undefined,
    wallets[1],
    undefined,
    undefined,
  ])
})

test('a receiving wallet has its network resolved; flagged or deleted ones take no payment', async () => {
  const org = await world.organisation()
  const made = await world.wallet(org, { chain: 'base' })
  const id = walletId(made.id)
  const ctx = {
    tenant: { organisationId: org.id, environment: 'test' as const },
    receivingWallets: createWalletDirectory({ db: world.database.db }),
  }
  const wallet = await getPayableWallet(ctx, id)
  expect(wallet).toMatchObject({ id, address: made.address, chain: 'base', isActive: true, amlStatus: 'pending' })
  expect([wallet.network.name, wallet.supportedTokens]).toEqual(['base-sepolia', ['USDC']])

  await world.database.db.run(sql`update byo_wallets set aml_status = 'flagged' where id = ${id}`)
  await expect(getPayableWallet(ctx, id)).rejects.toMatchObject({ code: 'wallet-flagged', entry: { status: 422 } })
  const shown = await world.call(org.testKey, 'GET', `/wallet-infra/byo-wallets/${id}`)
  expect(shown.body).toMatchObject({ amlStatus: 'flagged', isActive: false })

  await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${id}`)
  await expect(getPayableWallet(ctx, id)).rejects.toMatchObject({ code: 'wallet-not-found', entry: { status: 422 } })
})
