import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { CreatedAt, Metadata, StoredMetadata, text } from '../../../platform/wire.ts'

/** Children that one request derives at most. */
const childrenMax = 1_000
/** Metadata of a bulk request, as JSON text: it is written and returned once per child. */
const sharedMetadataCharactersMax = 1_024

export const NewChildAddresses = z
  .strictObject({
    name: text(200).optional().describe('A name of your own.'),
    metadata: Metadata.optional(),
    count: z
      .int()
      .min(1)
      .max(childrenMax)
      .optional()
      .meta({
        description: `Derive this many at once, at most ${childrenMax}; the response is then an array, by index. Each has the same name and metadata.`,
      }),
  })
  .refine(
    ({ count, metadata }) =>
      count === undefined || JSON.stringify(metadata ?? {}).length <= sharedMetadataCharactersMax,
    { path: ['metadata'], message: `must be at most ${sharedMetadataCharactersMax} characters of JSON with count` },
  )
export type NewChildAddresses = z.output<typeof NewChildAddresses>

/** An address derived from a master wallet: the service holds its key, which never leaves. */
export const ChildAddress = z.strictObject({
  id: id('cad'),
  address: z.string().describe('Address of the child, with EIP-55 checksum.'),
  derivationPath: z.string().meta({ example: "m/44'/60'/0'/0/1" }).describe('HD derivation path (BIP-32).'),
  masterWalletId: id('mwt'),
  name: z.string().nullable().meta({ description: 'Null if none was given.' }),
  metadata: StoredMetadata,
  createdAt: CreatedAt,
})
export type ChildAddress = z.input<typeof ChildAddress>

export const ChildAddressParams = z.strictObject({ id: id('mwt'), cad: id('cad') })

named({ NewChildAddresses, ChildAddress })
