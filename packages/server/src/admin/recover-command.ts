import { checksumAddress, isAddress } from '@purser/protocol'
import { z } from 'zod'
import { createSignatures } from '../chain/index.ts'
import { createDeriveAddress, recoverChildAddress } from '../features/wallets/index.ts'
import { id } from '../platform/ids.ts'
import { command } from './command.ts'

const Address = z.string().refine(isAddress, { error: 'must be 0x and 40 hexadecimal digits' })

export const recoverChild = command({
  name: 'recover-child',
  summary: 'Recreate a child address whose record a restore lost, so that its deposits are detected.',
  options: {
    wallet: 'id of the master wallet (mwt_…)',
    address: 'the address, as its owner received it',
  },
  schema: z.strictObject({ wallet: id('mwt'), address: Address }),
  async run(operator, { wallet, address }) {
    const signatures = await createSignatures()
    const ctx = { ...operator, deriveAddress: createDeriveAddress(signatures) }
    const made = await recoverChildAddress(ctx, wallet, checksumAddress(address, signatures.keccak))
    const result = made ?? 'is not an address of this wallet that a restore skipped'
    return {
      lines: [`${address}  ${result}`],
      json: { childAddressId: made ?? null },
      exitCode: made === undefined ? 1 : 0,
    }
  },
})
