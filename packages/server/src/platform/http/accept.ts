/** A value of an `Accept` or `Accept-Encoding` header, in lower case, with its weight: 0 means not accepted. */
export interface WeightedValue {
  readonly value: string
  readonly weight: number
}

/** Most characters and most values of a list in a header that are read: a header of 16,000 commas would take milliseconds. The rest is ignored. */
const charactersMax = 4_096
const valuesMax = 64

/** The values of a header that is a list (RFC 9110, section 5.6.1), as far as they are read. */
function listedValues(header: string | undefined): readonly string[] {
  return (header ?? '').slice(0, charactersMax).split(',', valuesMax)
}

/** The values of an `Accept` or `Accept-Encoding` header (RFC 9110, section 12.4.2). A malformed weight counts as 0. */
export function weightedValues(header: string | undefined): readonly WeightedValue[] {
  return listedValues(header).map((written) => {
    const [value = '', ...parameters] = written.split(';', valuesMax).map((part) => part.trim().toLowerCase())
    const weight = parameters.find((part) => part.startsWith('q='))?.slice('q='.length) ?? '1'
    return { value, weight: /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 }
  })
}

/** The weight of this value in the header; 0 if the header does not name it. */
export function qualityOf(header: string | undefined, value: string): number {
  return weightedValues(header).find((one) => one.value === value)?.weight ?? 0
}

/** Whether `If-None-Match` names this ETag. Compares weakly, as a GET does (RFC 9110, section 13.1.2). */
export function namesTag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = listedValues(ifNoneMatch).map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes('*') || tags.includes(etag)
}
