/** The rule that makes a sample value. Ids, hashes and addresses are new for every sample. */
export type EventSample =
  | { readonly id: string }
  | { readonly random: 'hash' | 'address' }
  | { readonly secondsFromNow: number }
  | { readonly value: string | number | null }

/** A member of a payload. `T` is the type of its value. */
export interface EventField<T> {
  readonly type: T extends number ? 'integer' : 'string'
  readonly isNullable: null extends T ? true : false
  /** Whether the value is an ISO 8601 time. */
  readonly isTime: boolean
  readonly description: string
  readonly sample: EventSample
}

/** The members of a payload. */
export type EventFields = Readonly<Record<string, EventField<string> | EventField<string | null> | EventField<number>>>

/** A text that is the same in every sample. */
export const value = (sample: string, description: string): EventField<string> => ({
  type: 'string',
  isNullable: false,
  isTime: false,
  description,
  sample: { value: sample },
})
const made = (sample: EventSample, description: string): EventField<string> => ({ ...value('', description), sample })

/** An id with this prefix. */
export const id = (prefix: string, description: string): EventField<string> => made({ id: prefix }, description)

/** A hash of 32 bytes in hex. */
export const hash = (description: string): EventField<string> => made({ random: 'hash' }, description)

/** An address of an EVM network. */
export const address = (description: string): EventField<string> => made({ random: 'address' }, description)

/** An ISO 8601 time, in the sample this many seconds from now. */
export const time = (description: string, secondsFromNow = 0): EventField<string> => ({
  ...made({ secondsFromNow }, description),
  isTime: true,
})

/** A whole number. */
export const integer = (sample: number, description: string): EventField<number> => ({
  type: 'integer',
  isNullable: false,
  isTime: false,
  description,
  sample: { value: sample },
})

/** The field, or null; the sample is not null. */
export const nullable = (field: EventField<string>): EventField<string | null> => ({ ...field, isNullable: true })

/** A text or null, and null in the sample. */
export const absent = (description: string): EventField<string | null> => ({
  ...nullable(value('', description)),
  sample: { value: null },
})

/** A time or null, and null in the sample. */
export const absentTime = (description: string): EventField<string | null> => ({ ...absent(description), isTime: true })
