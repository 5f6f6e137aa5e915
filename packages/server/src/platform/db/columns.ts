import { z } from 'zod'

/** A `numeric` value without decimal places: a row has its digits as text, and this returns a bigint. */
export const StoredBigInt = z.string().transform((text) => BigInt(text))

/** A stored address, hash or other bytes: `0x` and hexadecimal digits, which were checked before they were stored. */
export const StoredHex = z.templateLiteral(['0x', z.string()])
