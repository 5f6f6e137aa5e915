const headerLengthMax = 4_096
const tokenPattern = /^(?:\*|[a-z0-9-]+)$/
const parameterPattern = /^[A-Za-z0-9_-]+\s*=\s*\S+$/
const qPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

type Preference = { readonly method: string; readonly intent: string; readonly q: number }

/**
 * Selects and orders the offers by the payer's `Accept-Payment` (`tempo/charge, evm/*;q=0.5`), best first. The most
 * specific entry decides for an offer, so `tempo/charge;q=0` overrides `tempo/*`. Equally good offers keep the server's
 * order. If no offer matches or the header is malformed, returns all offers in their order, so that the payer sees what
 * it could pay. Source: draft-httpauth-payment-00, "Accept-Payment"; mppx 0.11 `AcceptPayment`.
 *
 * @example
 * orderOffers([{ method: 'tempo', intent: 'charge' }, { method: 'evm', intent: 'charge' }], 'evm/*')[0] // { method: 'evm', intent: 'charge' }
 */
export function orderOffers<T extends { readonly method: string; readonly intent: string }>(
  offers: readonly T[],
  acceptPayment: string | undefined,
): readonly T[] {
  const preferences = acceptPayment === undefined ? undefined : parsePreferences(acceptPayment)
  if (preferences === undefined) return offers
  const wanted = offers
    .map((offer) => ({ offer, q: weightOf(offer, preferences) }))
    .filter(({ q }) => q > 0)
    .sort((left, right) => right.q - left.q)
    .map(({ offer }) => offer)
  return wanted.length === 0 ? offers : wanted
}

function parsePreferences(header: string): readonly Preference[] | undefined {
  if (header.length > headerLengthMax) return undefined
  const preferences: Preference[] = []
  for (const entry of header.split(',')) {
    if (entry.trim() === '') continue
    const preference = parseEntry(entry)
    if (preference === undefined) return undefined
    preferences.push(preference)
  }
  return preferences
}

function parseEntry(entry: string): Preference | undefined {
  const [name = '', ...parameters] = entry.split(';').map((part) => part.trim())
  const [method, intent, more] = name.split('/').map((part) => part.trim())
  if (method === undefined || intent === undefined || more !== undefined) return undefined
  if (!tokenPattern.test(method) || !tokenPattern.test(intent)) return undefined
  const q = parseWeight(parameters)
  return q === undefined ? undefined : { method, intent, q }
}

/** Returns the `q` of the parameters, 1 if there is none; `undefined` if a parameter is malformed. */
function parseWeight(parameters: readonly string[]): number | undefined {
  let q = 1
  for (const parameter of parameters) {
    if (parameter === '') continue
    if (!parameterPattern.test(parameter)) return undefined
    const equals = parameter.indexOf('=')
    if (parameter.slice(0, equals).trim() !== 'q') continue
    const value = parameter.slice(equals + 1).trim()
    if (!qPattern.test(value)) return undefined
    q = Number(value)
  }
  return q
}

/**
 * Returns the `q` of the most specific matching entries: the highest if several are equally specific, 0 if none
 * matches.
 */
function weightOf(offer: { readonly method: string; readonly intent: string }, preferences: readonly Preference[]) {
  const best = { specificity: -1, q: 0 }
  for (const { method, intent, q } of preferences) {
    if ((method !== '*' && method !== offer.method) || (intent !== '*' && intent !== offer.intent)) continue
    const specificity = Number(method !== '*') + Number(intent !== '*')
    if (specificity < best.specificity || (specificity === best.specificity && q <= best.q)) continue
    best.specificity = specificity
    best.q = q
  }
  return best.q
}
