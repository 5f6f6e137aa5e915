/** A value of an `Accept` or `Accept-Encoding` header, in lower case, with its weight: 0 means not accepted. */
export interface WeightedValue {
  readonly value: string
  readonly weight: number
}

/** The values of an `Accept` or `Accept-Encoding` header (RFC 9110, section 12.4.2). A malformed weight counts as 0. */
export function weightedValues(header: string | undefined): readonly WeightedValue[] {
  return (header ?? '').split(',').map((written) => {
    const [value = '', ...parameters] = written.split(';').map((part) => part.trim().toLowerCase())
    const weight = parameters.find((part) => part.startsWith('q='))?.slice('q='.length) ?? '1'
    return { value, weight: /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 }
  })
}

/** The weight of this value in the header; 0 if the header does not name it. */
export function qualityOf(header: string | undefined, value: string): number {
  return weightedValues(header).find((one) => one.value === value)?.weight ?? 0
}
