import { checksumAddress, isAddress } from '@purser/protocol'
import { z } from 'zod'
import { createSignatures } from '../chain/index.ts'
import { createDeriveAddress, recoverChildAddress } from '../features/wallets/index.ts'
import { id } from '../platform/ids.ts'
import { command } from './command.ts'

const Address = z.string().refine(isAddress, { error: 'must be 0x and 40 hexadecimal digits' })

export const recoverChild = command({
  name: 'recover-child',
  summary: 'Make a child address again whose record a restore lost, so that its deposits are seen.',
  options: {
    wallet: 'id of the master wallet (mwt_…)',
    address: 'the address, as its owner was given it',
  },
  schema: z.strictObject({ wallet: id('mwt'), address: Address }),
  async run(operator, { wallet, address }) {
    const signatures = await createSignatures()
    const ctx = { ...operator, deriveAddress: createDeriveAddress(signatures) }
    const made = await recoverChildAddress(ctx, wallet, checksumAddress(address, signatures.keccak))
    const says = made ?? 'is no address of this wallet that a restore passed over'
    return { text: `${address}  ${says}`, json: { childAddressId: made ?? null }, exitCode: made === undefined ? 1 : 0 }
  },
})
