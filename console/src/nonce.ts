import { setNonce } from 'get-nonce'

// nonce is that of this answer: the policy allows style elements with it only (ADR 0130).
export const nonce = document.querySelector<HTMLMetaElement>('meta[name=nonce]')?.content ?? ''

setNonce(nonce)
