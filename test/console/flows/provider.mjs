// Signing in with an identity provider, below a path.
import { assert, base, call, field, flow, go, made, open, press, see, settled } from './lib.mjs'

const half = 'gatehouse.session'
const trusting = { ignoreHTTPSErrors: true } // the provider's authority is that of the spec

// logIn goes to the provider and signs in there.
async function logIn(page, name) {
  await press(page, 'Sign in with Staff')
  await page.locator('input[name=login]').fill(name)
  await page.locator('input[name=password]').fill('secret')
  await page.getByRole('button', { name: 'Log in' }).click()
}

// use makes a call with the halves of the session of a page.
async function halves(page) {
  const [cookie] = (await page.context().cookies(base)).filter((c) => c.name === 'gatehouse_session')
  return { Cookie: `gatehouse_session=${cookie?.value}`, 'Gatehouse-Session': await page.evaluate((half) => localStorage.getItem(half), half) }
}
const use = async (headers, method = 'GET', path = 'upstream', body) => (await fetch(new URL(path, base), { method, headers: { 'Content-Type': 'application/json', ...headers }, body: body && JSON.stringify(body) })).status

await flow(async (step) => {
  await made('/token', { token_name: 'shop-ci', token_role: 'editor', token_tags: ['team-shop'] })
  await made('/upstream', { upstream_name: 'blue', upstream_ip: '192.0.2.1', upstream_port: 80 })

  step('a viewer comes back to the page that was asked for, without the code in the address')
  const page = await open('#/upstream/blue', trusting)
  await see(page, 'Or with a token of the API.')
  await logIn(page, 'vic')
  await see(page, '192.0.2.1')
  await see(page, 'viewer')
  assert.equal(page.url(), new URL('ui/#/upstream/blue', base).href)
  const [cookie] = (await page.context().cookies(base)).filter((c) => c.name === 'gatehouse_session')
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict'])
  assert.deepEqual(await page.evaluate(() => [sessionStorage.getItem('gatehouse.signin'), document.cookie]), [null, ''])

  step('a forged write of a viewer is refused')
  const viewer = await halves(page)
  assert.equal(await use(viewer), 200)
  assert.equal(await use({ Cookie: viewer.Cookie }), 401)
  assert.equal(await use(viewer, 'DELETE', 'upstream/blue'), 403)
  assert.equal(await use(viewer, 'POST', 'token', { token_name: 'x', token_role: 'admin' }), 403)

  step('the sign-out ends the session on the server')
  await page.getByRole('button', { name: 'Signed in as oidc:vic' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await see(page, 'Sign in with Staff')
  assert.equal(await use(viewer), 401)
  await press(page, 'Sign in with Staff') // the provider remembers vic
  await see(page, '192.0.2.1')
  assert.deepEqual(page.complaints, [])

  step('an admin has a name in the history that no token can have')
  const ann = await open('', trusting)
  await logIn(ann, 'ann')
  await settled(ann)
  assert.equal(await use(await halves(ann), 'POST', 'upstream', { upstream_name: 'green', upstream_ip: '192.0.2.2', upstream_port: 80 }), 201)
  await go(ann, '/history')
  await see(ann, 'oidc:ann.example (ann)')
  assert.equal((await call('POST', '/token', { token_name: 'oidc:ann', token_role: 'admin' })).status, 400)

  step('an editor changes what is of the team')
  const eve = await open('', trusting)
  await logIn(eve, 'eve')
  await see(eve, 'editor')
  const editor = await halves(eve)
  const upstream = (name, tag) => ({ upstream_name: name, upstream_ip: '192.0.2.3', upstream_port: 80, tags: [tag] })
  assert.equal(await use(editor, 'POST', 'upstream', upstream('shop', 'team-shop')), 201)
  assert.equal(await use(editor, 'POST', 'upstream', upstream('pay', 'team-pay')), 403)

  step('somebody without a group is told so, and has no session')
  const nora = await open('', trusting)
  await logIn(nora, 'nora')
  await see(nora, 'oidc:nora is in "dev", and none that may use the console')
  assert.deepEqual((await nora.context().cookies(base)).filter((c) => c.name === 'gatehouse_session'), [])
  await field(nora, 'Token').fill(process.env.TOKEN)
  await press(nora, 'Sign in')
  await settled(nora)
  assert.deepEqual(nora.complaints, [])

  step('the answer to the sign-in of somebody else signs nobody in')
  const thief = await open('', trusting)
  await thief.route('**/ui/oidc/session', (route) => route.abort()) // the code stays good
  const arrival = thief.waitForRequest(/\/ui\/\?code=.*state=/)
  await logIn(thief, 'ann')
  const answer = (await arrival).url()
  await see(thief, 'The control plane does not answer.')
  const victim = await open('', trusting)
  await victim.goto(answer)
  await see(victim, 'is not to a sign-in that has begun in this tab')
  assert.equal(victim.url(), new URL('ui/', base).href)
  assert.deepEqual((await victim.context().cookies(base)).filter((c) => c.name === 'gatehouse_session'), [])

  step('somebody who gives up at the provider may try again')
  await press(victim, 'Sign in with Staff')
  await victim.locator('input[name=login]').waitFor()
  await victim.goto(new URL('ui/', base).href)
  const { state } = JSON.parse(await victim.evaluate(() => sessionStorage.getItem('gatehouse.signin')))
  await victim.goto(new URL(`ui/?error=access_denied&error_description=x&state=${state}`, base).href)
  await see(victim, 'The identity provider has not signed you in (access_denied).')
  await logIn(victim, 'vic')
  await see(victim, 'viewer')
})
