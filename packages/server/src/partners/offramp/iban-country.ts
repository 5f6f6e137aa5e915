/** ISO 3166-1 alpha-2 and alpha-3 codes of the SEPA countries. */
const alpha3 = new Map(
  'ADAND ALALB ATAUT BEBEL BGBGR CHCHE CYCYP CZCZE DEDEU DKDNK EEEST ESESP FIFIN FRFRA GBGBR GIGIB GRGRC HRHRV HUHUN IEIRL ISISL ITITA LILIE LTLTU LULUX LVLVA MCMCO MDMDA MEMNE MKMKD MTMLT NLNLD NONOR PLPOL PTPRT RSSRB ROROU SESWE SISVN SKSVK SMSMR VAVAT'
    .split(' ')
    .map((pair) => [pair.slice(0, 2), pair.slice(2)]),
)

/** The alpha-3 country code of an IBAN; undefined for a country outside SEPA. */
export function alpha3OfIban(iban: string): string | undefined {
  return alpha3.get(iban.slice(0, 2))
}
