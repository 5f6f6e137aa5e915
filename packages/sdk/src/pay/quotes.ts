import {
  type AuthorizationOffer,
  formatMppCredential,
  formatPayerSource,
  mppEndSeconds,
  mppHeaderOf,
  type OfferReading,
  type TempoOffer,
} from '@purser/protocol'
import { signDraft } from './authorization.ts'
import type { Refusal } from './errors.ts'
import type { Payer } from './payer.ts'
import type { Credential, Quote } from './payment.ts'
import { tempoWayOf } from './tempo.ts'

/** A parsed offer: payable by this signer, or the reason why not. */
export type Reading = { readonly quote: Quote } | { readonly refusal: Refusal }

/** The offer as this signer pays it. */
export function quoteOf(payer: Payer, reading: OfferReading): Reading {
  if ('refusal' in reading) return reading
  const { offer } = reading
  return offer.kind === 'authorization' ? authorizationQuote(payer, offer) : tempoQuote(payer, offer)
}

function authorizationQuote(payer: Payer, offer: AuthorizationOffer): Reading {
  const sign = () =>
    signDraft(payer, offer.draft({ from: payer.address, nonce: payer.randomHex(32), nowMs: payer.now() }))
  return { quote: { ...offer, spendsOnSigning: false, sign } }
}

function tempoQuote(payer: Payer, offer: TempoOffer): Reading {
  const { challenge, feePayer, modes } = offer
  const endSeconds = mppEndSeconds(challenge, payer.now())
  const way = tempoWayOf(payer, { price: offer, challenge, endSeconds, feePayer, modes })
  if (way === undefined) return { refusal: { offer: 'mpp tempo.charge', reason: 'signer-cannot' } }
  const sign = async (): Promise<Credential> => {
    const { payload, validBeforeSeconds } = await way.sign()
    const source = formatPayerSource({ chainId: offer.network.chainId, address: payer.address })
    const value = formatMppCredential({ challenge, payload, source })
    return { header: mppHeaderOf(challenge), value, validBeforeSeconds }
  }
  return { quote: { ...offer, spendsOnSigning: way.spendsOnSigning, sign } }
}
