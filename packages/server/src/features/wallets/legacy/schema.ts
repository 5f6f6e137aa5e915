import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { CreatedAt } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { Balance } from '../balances/balances.ts'
import { LegacyCoin } from './coins.ts'

const description = 'USDC_E is on tempo, USDC and USDT are on ethereum.'

export const NewLegacyWallet = z.strictObject({ coin: LegacyCoin.default('USDC_E').meta({ description }) })
export type NewLegacyWallet = z.output<typeof NewLegacyWallet>

/** The wallet of an organisation in one environment, as seen by one coin: the address is the same for all coins. */
export const LegacyWallet = z.strictObject({
  id: id('mwt'),
  address: z.string().describe('Address of the wallet, with EIP-55 checksum.'),
  coin: LegacyCoin.describe('The coin of the request.'),
  chain: ChainName,
  createdAt: CreatedAt,
})
export type LegacyWallet = z.input<typeof LegacyWallet>

export const LegacyBalanceQuery = z.strictObject({
  coin: LegacyCoin.optional().meta({ description: 'Only this coin; every coin of the environment if omitted.' }),
})
export type LegacyBalanceQuery = z.output<typeof LegacyBalanceQuery>

/** Balance of the wallet. `tokenSymbol` is the token on the chain, which in the test environment may be a substitute for the coin. */
export const LegacyBalance = z.strictObject({
  id: id('mwt'),
  address: z.string().describe('Address of the wallet, with EIP-55 checksum.'),
  balances: z
    .array(z.strictObject({ coin: LegacyCoin.describe('The coin.'), ...Balance.omit({ parts: true }).shape }))
    .describe('Balance of each coin.'),
})
export type LegacyBalance = z.input<typeof LegacyBalance>

named({ NewLegacyWallet, LegacyWallet, LegacyBalance })
