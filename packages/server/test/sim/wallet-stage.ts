import {
  type Address,
  bytesToHex,
  hexToBytes,
  keccak256,
  type Network,
  networkByName,
  type TokenInfo,
} from '@purser/protocol'
import { type Hex, parseTransaction, serializeTransaction } from 'viem'
import { z } from 'zod'
import { createChildAddresses } from '../../src/features/wallets/children/children.ts'
import { createMasterWallet } from '../../src/features/wallets/managed/create.ts'
import { createBankAccount } from '../../src/features/withdrawals/bank-accounts/bank-accounts.ts'
import type { Ctx } from '../../src/modules.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type ApiKeyId, type ChildAddressId, type Id, id, type MasterWalletId } from '../../src/platform/ids.ts'
import type { TestDatabase } from '../database.ts'
import { SimChain } from './chain.ts'
import type { Chance } from './chance.ts'
import { makeShares } from './life.ts'
import { marketOf, type Temper } from './market.ts'
import { constantsOf } from './stage.ts'
import { openTheater, type Theater } from './theater.ts'
import { addCoin, wordOfNumber } from './token.ts'

/** A managed wallet, with its place in its family. */
export interface SimWallet {
  readonly id: MasterWalletId | ChildAddressId
  readonly address: Address
  readonly masterId: MasterWalletId
  readonly isChild: boolean
}

/** The wallets of one organisation, on which a history happens, and the two networks that a bridge connects. */
export type WalletStage = Awaited<ReturnType<typeof aWalletStage>>

const masterCount = 3
const childCount = 2
export const depth = 3

export async function aWalletStage(database: TestDatabase) {
  const theater = await openTheater(database, 1)
  const [tenant] = theater.tenants
  if (tenant === undefined) throw new Error('there is no organisation')
  const ctx = theater.actingFor(tenant)
  const wallets: SimWallet[] = []
  for (let count = 0; count < masterCount; count += 1) wallets.push(...(await aFamily(ctx)))
  const account = { accountName: 'Acme', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }
  const bankAccountId: Id<'bac'> = (await createBankAccount(ctx, account)).id
  const near = networkNamed('eth-sepolia')
  await makeShares(theater.db, near)
  await theater.states.keep('beginning')
  return {
    ...theater,
    clear: () => theater.states.putBack('beginning'),
    tenant,
    wallets,
    bankAccountId,
    near,
    far: networkNamed('arbitrum-sepolia'),
    token: tokenOf(near),
    /** Makes an API key of the tenant: one that is revoked or unknown moves nothing. */
    insertKey: (apiKeyId: ApiKeyId) =>
      theater.db.run(sql`
        insert into api_keys (id, organisation_id, environment, name, key_hash, last4, created_by, created_at)
        select ${apiKeyId}, organisation_id, ${tenant.environment}, 'simulated', convert_to(${apiKeyId}, 'UTF8'), 'last', account_id, now() from members
        where organisation_id = ${tenant.organisationId}`),
    /** The newest mark that the database has; a history begins with it. */
    readMark: () =>
      theater.db.one(
        z.object({ deployment: z.string(), generation: z.number(), counter: z.bigint() }),
        sql`select deployment, generation, counter from witness_state`,
      ),
  }
}

function networkNamed(name: string): Network {
  const known = networkByName(name)
  if (known === undefined) throw new Error('no such network')
  return { ...known, confirmationDepth: depth, depositFinality: { depth } }
}

function tokenOf({ tokens }: Network): TokenInfo {
  const [token] = tokens
  if (token === undefined) throw new Error('a network has a token')
  return token
}

const HexText = z.templateLiteral(['0x', z.string()])

async function aFamily(ctx: Ctx): Promise<readonly SimWallet[]> {
  const master = await createMasterWallet(ctx, { chain: 'ethereum', supportedTokens: ['USDC'] })
  const masterId = id('mwt').parse(master.id)
  const children = [await createChildAddresses(ctx, masterId, { count: childCount })].flat()
  return [
    { id: masterId, address: HexText.parse(master.address), masterId, isChild: false },
    ...children.map((child) => {
      const address = HexText.parse(child.address)
      return { id: id('cad').parse(child.id), address, masterId, isChild: true }
    }),
  ]
}

const decimalsRead = '0x313ce567'

type Chains = Pick<WalletStage, 'near' | 'far' | 'wallets' | 'signer' | 'deps'>

/** What accounts have in the first block. */
const genesis = {
  masterRaw: 400_000_000n,
  childRaw: 60_000_000n,
  masterWei: 4n * 10n ** 17n,
  childWei: 2n * 10n ** 16n,
} as const

/** The chain of one network. `temper` is what the partner's contracts on it do. */
export function aWalletChain(
  stage: Chains,
  network: Network,
  { chance, timestamp, temper }: { readonly chance: Chance; readonly timestamp: bigint; readonly temper: Temper },
): SimChain {
  const token = tokenOf(network)
  const own = new Set(stage.wallets.map(({ address }) => address.toLowerCase()))
  const rules = {
    token: token.address,
    settler: stage.signer.address,
    constants: new Map([...constantsOf({ network, token }), [decimalsRead, wordOfNumber(6n) as Hex]]),
    own,
    senderOf: (raw: Hex) => senderOf(stage, raw),
    contracts: marketOf({ token: token.address, temper }),
  }
  return new SimChain(rules, chance, { timestamp, depth })
}

/** Funds the wallets. The token is minted, with the logs from which the service books the deposits. */
export function endow(
  { wallets, signer }: Pick<WalletStage, 'wallets' | 'signer'>,
  chain: SimChain,
  chance: Chance,
): void {
  const { state } = chain.head
  addCoin(state, signer.address, 10n ** 20n)
  chain.mint(wallets.map(({ address: to, isChild }) => ({ to, value: isChild ? genesis.childRaw : genesis.masterRaw })))
  for (const { address, isChild } of wallets) {
    if (!isChild) addCoin(state, address, genesis.masterWei)
    else if (chance.happens(0.3)) addCoin(state, address, genesis.childWei)
  }
}

/** Recovers the signer; the zero address for an invalid signature. */
function senderOf({ deps }: Pick<Theater, 'deps'>, raw: Hex): string {
  const { r, s, v, yParity, ...unsigned } = parseTransaction(raw)
  const hash = keccak256(
    hexToBytes(serializeTransaction({ ...unsigned, type: 'eip1559' } as Parameters<typeof serializeTransaction>[0])),
  )
  const word = (value: Hex | undefined) => hexToBytes(`0x${(value ?? '0x').slice(2).padStart(64, '0')}`)
  const compact = Uint8Array.from([...word(r), ...word(s)])
  const key = deps.signatures.recover(hash, compact, yParity === 1 ? 1 : 0)
  return key === undefined ? `0x${'0'.repeat(40)}` : bytesToHex(keccak256(key.subarray(1)).subarray(12))
}
