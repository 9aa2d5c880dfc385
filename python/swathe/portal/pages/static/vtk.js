/*! Made by `make bundles` from these packages:

@kitware/vtk.js 37.4.3, BSD-3-Clause

Copyright (c) 2016, Kitware Inc.
All rights reserved.

Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:

- Redistributions of source code must retain the above copyright notice, this
  list of conditions and the following disclaimer.

- Redistributions in binary form must reproduce the above copyright notice,
  this list of conditions and the following disclaimer in the documentation
  and/or other materials provided with the distribution.

- Neither the name of the copyright holder nor the names of its
  contributors may be used to endorse or promote products derived from
  this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"
AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE
FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER
CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY,
OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE
OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.

----

d3-array 3.2.5, ISC

Copyright 2010-2026 Mike Bostock

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.

----

d3-color 3.1.1, ISC

Copyright 2010-2026 Mike Bostock

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.

----

d3-format 3.1.3, ISC

Copyright 2010-2026 Mike Bostock

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.

----

d3-interpolate 3.0.2, ISC

Copyright 2010-2026 Mike Bostock

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.

----

d3-scale 4.0.2, ISC

Copyright 2010-2021 Mike Bostock

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.

----

d3-time 3.1.1, ISC

Copyright 2010-2026 Mike Bostock

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.

----

d3-time-format 4.1.1, ISC

Copyright 2010-2026 Mike Bostock

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.

----

fast-deep-equal 3.1.3, MIT

MIT License

Copyright (c) 2017 Evgeny Poberezkin

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.

----

gl-matrix 3.4.3, MIT

Copyright (c) 2015-2021, Brandon Jones, Colin MacKenzie IV.

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.

----

seedrandom 3.0.5, MIT



----

spark-md5 3.0.2, (WTFPL OR MIT)

DO WHAT THE FUCK YOU WANT TO PUBLIC LICENSE
                    Version 2, December 2004

 Copyright (C) 2015 André Cruz <amdfcruz@gmail.com>

 Everyone is permitted to copy and distribute verbatim or modified
 copies of this license document, and changing it is allowed as long
 as the name is changed.

            DO WHAT THE FUCK YOU WANT TO PUBLIC LICENSE
   TERMS AND CONDITIONS FOR COPYING, DISTRIBUTION AND MODIFICATION

  0. You just DO WHAT THE FUCK YOU WANT TO.
*/
var dd=Object.create;var Ts=Object.defineProperty;var Td=Object.getOwnPropertyDescriptor;var xd=Object.getOwnPropertyNames;var yd=Object.getPrototypeOf,md=Object.prototype.hasOwnProperty;var Ot=(t,e)=>()=>{try{return e||t((e={exports:{}}).exports,e),e.exports}catch(n){throw e=0,n}},or=(t,e)=>{for(var n in e)Ts(t,n,{get:e[n],enumerable:!0})},Sd=(t,e,n,r)=>{if(e&&typeof e=="object"||typeof e=="function")for(let a of xd(e))!md.call(t,a)&&a!==n&&Ts(t,a,{get:()=>e[a],enumerable:!(r=Td(e,a))||r.enumerable});return t};var Hr=(t,e,n)=>(n=t!=null?dd(yd(t)):{},Sd(e||!t||!t.__esModule?Ts(n,"default",{value:t,enumerable:!0}):n,t));var La=Ot((HL,jc)=>{"use strict";jc.exports=function t(e,n){if(e===n)return!0;if(e&&n&&typeof e=="object"&&typeof n=="object"){if(e.constructor!==n.constructor)return!1;var r,a,i;if(Array.isArray(e)){if(r=e.length,r!=n.length)return!1;for(a=r;a--!==0;)if(!t(e[a],n[a]))return!1;return!0}if(e.constructor===RegExp)return e.source===n.source&&e.flags===n.flags;if(e.valueOf!==Object.prototype.valueOf)return e.valueOf()===n.valueOf();if(e.toString!==Object.prototype.toString)return e.toString()===n.toString();if(i=Object.keys(e),r=i.length,r!==Object.keys(n).length)return!1;for(a=r;a--!==0;)if(!Object.prototype.hasOwnProperty.call(n,i[a]))return!1;for(a=r;a--!==0;){var s=i[a];if(!t(e[s],n[s]))return!1}return!0}return e!==e&&n!==n}});var mf=Ot((yf,Rs)=>{(function(t,e,n){function r(o){var c=this,f=s();c.next=function(){var u=2091639*c.s0+c.c*23283064365386963e-26;return c.s0=c.s1,c.s1=c.s2,c.s2=u-(c.c=u|0)},c.c=1,c.s0=f(" "),c.s1=f(" "),c.s2=f(" "),c.s0-=f(o),c.s0<0&&(c.s0+=1),c.s1-=f(o),c.s1<0&&(c.s1+=1),c.s2-=f(o),c.s2<0&&(c.s2+=1),f=null}function a(o,c){return c.c=o.c,c.s0=o.s0,c.s1=o.s1,c.s2=o.s2,c}function i(o,c){var f=new r(o),u=c&&c.state,g=f.next;return g.int32=function(){return f.next()*4294967296|0},g.double=function(){return g()+(g()*2097152|0)*11102230246251565e-32},g.quick=g,u&&(typeof u=="object"&&a(u,f),g.state=function(){return a(f,{})}),g}function s(){var o=4022871197,c=function(f){f=String(f);for(var u=0;u<f.length;u++){o+=f.charCodeAt(u);var g=.02519603282416938*o;o=g>>>0,g-=o,g*=o,o=g>>>0,g-=o,o+=g*4294967296}return(o>>>0)*23283064365386963e-26};return c}e&&e.exports?e.exports=i:n&&n.amd?n(function(){return i}):this.alea=i})(yf,typeof Rs=="object"&&Rs,typeof define=="function"&&define)});var Cf=Ot((Sf,Ms)=>{(function(t,e,n){function r(s){var o=this,c="";o.x=0,o.y=0,o.z=0,o.w=0,o.next=function(){var u=o.x^o.x<<11;return o.x=o.y,o.y=o.z,o.z=o.w,o.w^=o.w>>>19^u^u>>>8},s===(s|0)?o.x=s:c+=s;for(var f=0;f<c.length+64;f++)o.x^=c.charCodeAt(f)|0,o.next()}function a(s,o){return o.x=s.x,o.y=s.y,o.z=s.z,o.w=s.w,o}function i(s,o){var c=new r(s),f=o&&o.state,u=function(){return(c.next()>>>0)/4294967296};return u.double=function(){do var g=c.next()>>>11,l=(c.next()>>>0)/4294967296,h=(g+l)/(1<<21);while(h===0);return h},u.int32=c.next,u.quick=u,f&&(typeof f=="object"&&a(f,c),u.state=function(){return a(c,{})}),u}e&&e.exports?e.exports=i:n&&n.amd?n(function(){return i}):this.xor128=i})(Sf,typeof Ms=="object"&&Ms,typeof define=="function"&&define)});var Of=Ot((wf,Es)=>{(function(t,e,n){function r(s){var o=this,c="";o.next=function(){var u=o.x^o.x>>>2;return o.x=o.y,o.y=o.z,o.z=o.w,o.w=o.v,(o.d=o.d+362437|0)+(o.v=o.v^o.v<<4^(u^u<<1))|0},o.x=0,o.y=0,o.z=0,o.w=0,o.v=0,s===(s|0)?o.x=s:c+=s;for(var f=0;f<c.length+64;f++)o.x^=c.charCodeAt(f)|0,f==c.length&&(o.d=o.x<<10^o.x>>>4),o.next()}function a(s,o){return o.x=s.x,o.y=s.y,o.z=s.z,o.w=s.w,o.v=s.v,o.d=s.d,o}function i(s,o){var c=new r(s),f=o&&o.state,u=function(){return(c.next()>>>0)/4294967296};return u.double=function(){do var g=c.next()>>>11,l=(c.next()>>>0)/4294967296,h=(g+l)/(1<<21);while(h===0);return h},u.int32=c.next,u.quick=u,f&&(typeof f=="object"&&a(f,c),u.state=function(){return a(c,{})}),u}e&&e.exports?e.exports=i:n&&n.amd?n(function(){return i}):this.xorwow=i})(wf,typeof Es=="object"&&Es,typeof define=="function"&&define)});var Mf=Ot((Rf,Ds)=>{(function(t,e,n){function r(s){var o=this;o.next=function(){var f=o.x,u=o.i,g,l,h;return g=f[u],g^=g>>>7,l=g^g<<24,g=f[u+1&7],l^=g^g>>>10,g=f[u+3&7],l^=g^g>>>3,g=f[u+4&7],l^=g^g<<7,g=f[u+7&7],g=g^g<<13,l^=g^g<<9,f[u]=l,o.i=u+1&7,l};function c(f,u){var g,l,h=[];if(u===(u|0))l=h[0]=u;else for(u=""+u,g=0;g<u.length;++g)h[g&7]=h[g&7]<<15^u.charCodeAt(g)+h[g+1&7]<<13;for(;h.length<8;)h.push(0);for(g=0;g<8&&h[g]===0;++g);for(g==8?l=h[7]=-1:l=h[g],f.x=h,f.i=0,g=256;g>0;--g)f.next()}c(o,s)}function a(s,o){return o.x=s.x.slice(),o.i=s.i,o}function i(s,o){s==null&&(s=+new Date);var c=new r(s),f=o&&o.state,u=function(){return(c.next()>>>0)/4294967296};return u.double=function(){do var g=c.next()>>>11,l=(c.next()>>>0)/4294967296,h=(g+l)/(1<<21);while(h===0);return h},u.int32=c.next,u.quick=u,f&&(f.x&&a(f,c),u.state=function(){return a(c,{})}),u}e&&e.exports?e.exports=i:n&&n.amd?n(function(){return i}):this.xorshift7=i})(Rf,typeof Ds=="object"&&Ds,typeof define=="function"&&define)});var Df=Ot((Ef,Vs)=>{(function(t,e,n){function r(s){var o=this;o.next=function(){var f=o.w,u=o.X,g=o.i,l,h;return o.w=f=f+1640531527|0,h=u[g+34&127],l=u[g=g+1&127],h^=h<<13,l^=l<<17,h^=h>>>15,l^=l>>>12,h=u[g]=h^l,o.i=g,h+(f^f>>>16)|0};function c(f,u){var g,l,h,y,p,v=[],x=128;for(u===(u|0)?(l=u,u=null):(u=u+"\0",l=0,x=Math.max(x,u.length)),h=0,y=-32;y<x;++y)u&&(l^=u.charCodeAt((y+32)%u.length)),y===0&&(p=l),l^=l<<10,l^=l>>>15,l^=l<<4,l^=l>>>13,y>=0&&(p=p+1640531527|0,g=v[y&127]^=l+p,h=g==0?h+1:0);for(h>=128&&(v[(u&&u.length||0)&127]=-1),h=127,y=512;y>0;--y)l=v[h+34&127],g=v[h=h+1&127],l^=l<<13,g^=g<<17,l^=l>>>15,g^=g>>>12,v[h]=l^g;f.w=p,f.X=v,f.i=h}c(o,s)}function a(s,o){return o.i=s.i,o.w=s.w,o.X=s.X.slice(),o}function i(s,o){s==null&&(s=+new Date);var c=new r(s),f=o&&o.state,u=function(){return(c.next()>>>0)/4294967296};return u.double=function(){do var g=c.next()>>>11,l=(c.next()>>>0)/4294967296,h=(g+l)/(1<<21);while(h===0);return h},u.int32=c.next,u.quick=u,f&&(f.X&&a(f,c),u.state=function(){return a(c,{})}),u}e&&e.exports?e.exports=i:n&&n.amd?n(function(){return i}):this.xor4096=i})(Ef,typeof Vs=="object"&&Vs,typeof define=="function"&&define)});var Lf=Ot((Vf,Ls)=>{(function(t,e,n){function r(s){var o=this,c="";o.next=function(){var u=o.b,g=o.c,l=o.d,h=o.a;return u=u<<25^u>>>7^g,g=g-l|0,l=l<<24^l>>>8^h,h=h-u|0,o.b=u=u<<20^u>>>12^g,o.c=g=g-l|0,o.d=l<<16^g>>>16^h,o.a=h-u|0},o.a=0,o.b=0,o.c=-1640531527,o.d=1367130551,s===Math.floor(s)?(o.a=s/4294967296|0,o.b=s|0):c+=s;for(var f=0;f<c.length+20;f++)o.b^=c.charCodeAt(f)|0,o.next()}function a(s,o){return o.a=s.a,o.b=s.b,o.c=s.c,o.d=s.d,o}function i(s,o){var c=new r(s),f=o&&o.state,u=function(){return(c.next()>>>0)/4294967296};return u.double=function(){do var g=c.next()>>>11,l=(c.next()>>>0)/4294967296,h=(g+l)/(1<<21);while(h===0);return h},u.int32=c.next,u.quick=u,f&&(typeof f=="object"&&a(f,c),u.state=function(){return a(c,{})}),u}e&&e.exports?e.exports=i:n&&n.amd?n(function(){return i}):this.tychei=i})(Vf,typeof Ls=="object"&&Ls,typeof define=="function"&&define)});var _f=Ot(()=>{});var Nf=Ot((Ff,Aa)=>{(function(t,e,n){var r=256,a=6,i=52,s="random",o=n.pow(r,a),c=n.pow(2,i),f=c*2,u=r-1,g;function l(T,d,C){var w=[];d=d==!0?{entropy:!0}:d||{};var D=v(p(d.entropy?[T,S(e)]:T??x(),3),w),m=new h(w),M=function(){for(var R=m.g(a),E=o,V=0;R<c;)R=(R+V)*r,E*=r,V=m.g(1);for(;R>=f;)R/=2,E/=2,V>>>=1;return(R+V)/E};return M.int32=function(){return m.g(4)|0},M.quick=function(){return m.g(4)/4294967296},M.double=M,v(S(m.S),e),(d.pass||C||function(R,E,V,N){return N&&(N.S&&y(N,m),R.state=function(){return y(m,{})}),V?(n[s]=R,E):R})(M,D,"global"in d?d.global:this==n,d.state)}function h(T){var d,C=T.length,w=this,D=0,m=w.i=w.j=0,M=w.S=[];for(C||(T=[C++]);D<r;)M[D]=D++;for(D=0;D<r;D++)M[D]=M[m=u&m+T[D%C]+(d=M[D])],M[m]=d;(w.g=function(R){for(var E,V=0,N=w.i,_=w.j,L=w.S;R--;)E=L[N=u&N+1],V=V*r+L[u&(L[N]=L[_=u&_+E])+(L[_]=E)];return w.i=N,w.j=_,V})(r)}function y(T,d){return d.i=T.i,d.j=T.j,d.S=T.S.slice(),d}function p(T,d){var C=[],w=typeof T,D;if(d&&w=="object")for(D in T)try{C.push(p(T[D],d-1))}catch{}return C.length?C:w=="string"?T:T+"\0"}function v(T,d){for(var C=T+"",w,D=0;D<C.length;)d[u&D]=u&(w^=d[u&D]*19)+C.charCodeAt(D++);return S(d)}function x(){try{var T;return g&&(T=g.randomBytes)?T=T(r):(T=new Uint8Array(r),(t.crypto||t.msCrypto).getRandomValues(T)),S(T)}catch{var d=t.navigator,C=d&&d.plugins;return[+new Date,t,C,t.screen,S(e)]}}function S(T){return String.fromCharCode.apply(0,T)}if(v(n.random(),e),typeof Aa=="object"&&Aa.exports){Aa.exports=l;try{g=_f()}catch{}}else typeof define=="function"&&define.amd?define(function(){return l}):n["seed"+s]=l})(typeof self<"u"?self:Ff,[],Math)});var Gf=Ot((ZL,Bf)=>{var Vd=mf(),Ld=Cf(),_d=Of(),Fd=Mf(),Nd=Df(),Bd=Lf(),Gn=Nf();Gn.alea=Vd;Gn.xor128=Ld;Gn.xorwow=_d;Gn.xorshift7=Fd;Gn.xor4096=Nd;Gn.tychei=Bd;Bf.exports=Gn});var X0=Ot(($0,K0)=>{(function(t){if(typeof $0=="object")K0.exports=t();else if(typeof define=="function"&&define.amd)define(t);else{var e;try{e=window}catch{e=self}e.SparkMD5=t()}})(function(t){"use strict";var e=function(x,S){return x+S&4294967295},n=["0","1","2","3","4","5","6","7","8","9","a","b","c","d","e","f"];function r(x,S,T,d,C,w){return S=e(e(S,x),e(d,w)),e(S<<C|S>>>32-C,T)}function a(x,S){var T=x[0],d=x[1],C=x[2],w=x[3];T+=(d&C|~d&w)+S[0]-680876936|0,T=(T<<7|T>>>25)+d|0,w+=(T&d|~T&C)+S[1]-389564586|0,w=(w<<12|w>>>20)+T|0,C+=(w&T|~w&d)+S[2]+606105819|0,C=(C<<17|C>>>15)+w|0,d+=(C&w|~C&T)+S[3]-1044525330|0,d=(d<<22|d>>>10)+C|0,T+=(d&C|~d&w)+S[4]-176418897|0,T=(T<<7|T>>>25)+d|0,w+=(T&d|~T&C)+S[5]+1200080426|0,w=(w<<12|w>>>20)+T|0,C+=(w&T|~w&d)+S[6]-1473231341|0,C=(C<<17|C>>>15)+w|0,d+=(C&w|~C&T)+S[7]-45705983|0,d=(d<<22|d>>>10)+C|0,T+=(d&C|~d&w)+S[8]+1770035416|0,T=(T<<7|T>>>25)+d|0,w+=(T&d|~T&C)+S[9]-1958414417|0,w=(w<<12|w>>>20)+T|0,C+=(w&T|~w&d)+S[10]-42063|0,C=(C<<17|C>>>15)+w|0,d+=(C&w|~C&T)+S[11]-1990404162|0,d=(d<<22|d>>>10)+C|0,T+=(d&C|~d&w)+S[12]+1804603682|0,T=(T<<7|T>>>25)+d|0,w+=(T&d|~T&C)+S[13]-40341101|0,w=(w<<12|w>>>20)+T|0,C+=(w&T|~w&d)+S[14]-1502002290|0,C=(C<<17|C>>>15)+w|0,d+=(C&w|~C&T)+S[15]+1236535329|0,d=(d<<22|d>>>10)+C|0,T+=(d&w|C&~w)+S[1]-165796510|0,T=(T<<5|T>>>27)+d|0,w+=(T&C|d&~C)+S[6]-1069501632|0,w=(w<<9|w>>>23)+T|0,C+=(w&d|T&~d)+S[11]+643717713|0,C=(C<<14|C>>>18)+w|0,d+=(C&T|w&~T)+S[0]-373897302|0,d=(d<<20|d>>>12)+C|0,T+=(d&w|C&~w)+S[5]-701558691|0,T=(T<<5|T>>>27)+d|0,w+=(T&C|d&~C)+S[10]+38016083|0,w=(w<<9|w>>>23)+T|0,C+=(w&d|T&~d)+S[15]-660478335|0,C=(C<<14|C>>>18)+w|0,d+=(C&T|w&~T)+S[4]-405537848|0,d=(d<<20|d>>>12)+C|0,T+=(d&w|C&~w)+S[9]+568446438|0,T=(T<<5|T>>>27)+d|0,w+=(T&C|d&~C)+S[14]-1019803690|0,w=(w<<9|w>>>23)+T|0,C+=(w&d|T&~d)+S[3]-187363961|0,C=(C<<14|C>>>18)+w|0,d+=(C&T|w&~T)+S[8]+1163531501|0,d=(d<<20|d>>>12)+C|0,T+=(d&w|C&~w)+S[13]-1444681467|0,T=(T<<5|T>>>27)+d|0,w+=(T&C|d&~C)+S[2]-51403784|0,w=(w<<9|w>>>23)+T|0,C+=(w&d|T&~d)+S[7]+1735328473|0,C=(C<<14|C>>>18)+w|0,d+=(C&T|w&~T)+S[12]-1926607734|0,d=(d<<20|d>>>12)+C|0,T+=(d^C^w)+S[5]-378558|0,T=(T<<4|T>>>28)+d|0,w+=(T^d^C)+S[8]-2022574463|0,w=(w<<11|w>>>21)+T|0,C+=(w^T^d)+S[11]+1839030562|0,C=(C<<16|C>>>16)+w|0,d+=(C^w^T)+S[14]-35309556|0,d=(d<<23|d>>>9)+C|0,T+=(d^C^w)+S[1]-1530992060|0,T=(T<<4|T>>>28)+d|0,w+=(T^d^C)+S[4]+1272893353|0,w=(w<<11|w>>>21)+T|0,C+=(w^T^d)+S[7]-155497632|0,C=(C<<16|C>>>16)+w|0,d+=(C^w^T)+S[10]-1094730640|0,d=(d<<23|d>>>9)+C|0,T+=(d^C^w)+S[13]+681279174|0,T=(T<<4|T>>>28)+d|0,w+=(T^d^C)+S[0]-358537222|0,w=(w<<11|w>>>21)+T|0,C+=(w^T^d)+S[3]-722521979|0,C=(C<<16|C>>>16)+w|0,d+=(C^w^T)+S[6]+76029189|0,d=(d<<23|d>>>9)+C|0,T+=(d^C^w)+S[9]-640364487|0,T=(T<<4|T>>>28)+d|0,w+=(T^d^C)+S[12]-421815835|0,w=(w<<11|w>>>21)+T|0,C+=(w^T^d)+S[15]+530742520|0,C=(C<<16|C>>>16)+w|0,d+=(C^w^T)+S[2]-995338651|0,d=(d<<23|d>>>9)+C|0,T+=(C^(d|~w))+S[0]-198630844|0,T=(T<<6|T>>>26)+d|0,w+=(d^(T|~C))+S[7]+1126891415|0,w=(w<<10|w>>>22)+T|0,C+=(T^(w|~d))+S[14]-1416354905|0,C=(C<<15|C>>>17)+w|0,d+=(w^(C|~T))+S[5]-57434055|0,d=(d<<21|d>>>11)+C|0,T+=(C^(d|~w))+S[12]+1700485571|0,T=(T<<6|T>>>26)+d|0,w+=(d^(T|~C))+S[3]-1894986606|0,w=(w<<10|w>>>22)+T|0,C+=(T^(w|~d))+S[10]-1051523|0,C=(C<<15|C>>>17)+w|0,d+=(w^(C|~T))+S[1]-2054922799|0,d=(d<<21|d>>>11)+C|0,T+=(C^(d|~w))+S[8]+1873313359|0,T=(T<<6|T>>>26)+d|0,w+=(d^(T|~C))+S[15]-30611744|0,w=(w<<10|w>>>22)+T|0,C+=(T^(w|~d))+S[6]-1560198380|0,C=(C<<15|C>>>17)+w|0,d+=(w^(C|~T))+S[13]+1309151649|0,d=(d<<21|d>>>11)+C|0,T+=(C^(d|~w))+S[4]-145523070|0,T=(T<<6|T>>>26)+d|0,w+=(d^(T|~C))+S[11]-1120210379|0,w=(w<<10|w>>>22)+T|0,C+=(T^(w|~d))+S[2]+718787259|0,C=(C<<15|C>>>17)+w|0,d+=(w^(C|~T))+S[9]-343485551|0,d=(d<<21|d>>>11)+C|0,x[0]=T+x[0]|0,x[1]=d+x[1]|0,x[2]=C+x[2]|0,x[3]=w+x[3]|0}function i(x){var S=[],T;for(T=0;T<64;T+=4)S[T>>2]=x.charCodeAt(T)+(x.charCodeAt(T+1)<<8)+(x.charCodeAt(T+2)<<16)+(x.charCodeAt(T+3)<<24);return S}function s(x){var S=[],T;for(T=0;T<64;T+=4)S[T>>2]=x[T]+(x[T+1]<<8)+(x[T+2]<<16)+(x[T+3]<<24);return S}function o(x){var S=x.length,T=[1732584193,-271733879,-1732584194,271733878],d,C,w,D,m,M;for(d=64;d<=S;d+=64)a(T,i(x.substring(d-64,d)));for(x=x.substring(d-64),C=x.length,w=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],d=0;d<C;d+=1)w[d>>2]|=x.charCodeAt(d)<<(d%4<<3);if(w[d>>2]|=128<<(d%4<<3),d>55)for(a(T,w),d=0;d<16;d+=1)w[d]=0;return D=S*8,D=D.toString(16).match(/(.*?)(.{0,8})$/),m=parseInt(D[2],16),M=parseInt(D[1],16)||0,w[14]=m,w[15]=M,a(T,w),T}function c(x){var S=x.length,T=[1732584193,-271733879,-1732584194,271733878],d,C,w,D,m,M;for(d=64;d<=S;d+=64)a(T,s(x.subarray(d-64,d)));for(x=d-64<S?x.subarray(d-64):new Uint8Array(0),C=x.length,w=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],d=0;d<C;d+=1)w[d>>2]|=x[d]<<(d%4<<3);if(w[d>>2]|=128<<(d%4<<3),d>55)for(a(T,w),d=0;d<16;d+=1)w[d]=0;return D=S*8,D=D.toString(16).match(/(.*?)(.{0,8})$/),m=parseInt(D[2],16),M=parseInt(D[1],16)||0,w[14]=m,w[15]=M,a(T,w),T}function f(x){var S="",T;for(T=0;T<4;T+=1)S+=n[x>>T*8+4&15]+n[x>>T*8&15];return S}function u(x){var S;for(S=0;S<x.length;S+=1)x[S]=f(x[S]);return x.join("")}u(o("hello"))!=="5d41402abc4b2a76b9719d911017c592"&&(e=function(x,S){var T=(x&65535)+(S&65535),d=(x>>16)+(S>>16)+(T>>16);return d<<16|T&65535}),typeof ArrayBuffer<"u"&&!ArrayBuffer.prototype.slice&&(function(){function x(S,T){return S=S|0||0,S<0?Math.max(S+T,0):Math.min(S,T)}ArrayBuffer.prototype.slice=function(S,T){var d=this.byteLength,C=x(S,d),w=d,D,m,M,R;return T!==t&&(w=x(T,d)),C>w?new ArrayBuffer(0):(D=w-C,m=new ArrayBuffer(D),M=new Uint8Array(m),R=new Uint8Array(this,C,D),M.set(R),m)}})();function g(x){return/[\u0080-\uFFFF]/.test(x)&&(x=unescape(encodeURIComponent(x))),x}function l(x,S){var T=x.length,d=new ArrayBuffer(T),C=new Uint8Array(d),w;for(w=0;w<T;w+=1)C[w]=x.charCodeAt(w);return S?C:d}function h(x){return String.fromCharCode.apply(null,new Uint8Array(x))}function y(x,S,T){var d=new Uint8Array(x.byteLength+S.byteLength);return d.set(new Uint8Array(x)),d.set(new Uint8Array(S),x.byteLength),T?d:d.buffer}function p(x){var S=[],T=x.length,d;for(d=0;d<T-1;d+=2)S.push(parseInt(x.substr(d,2),16));return String.fromCharCode.apply(String,S)}function v(){this.reset()}return v.prototype.append=function(x){return this.appendBinary(g(x)),this},v.prototype.appendBinary=function(x){this._buff+=x,this._length+=x.length;var S=this._buff.length,T;for(T=64;T<=S;T+=64)a(this._hash,i(this._buff.substring(T-64,T)));return this._buff=this._buff.substring(T-64),this},v.prototype.end=function(x){var S=this._buff,T=S.length,d,C=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],w;for(d=0;d<T;d+=1)C[d>>2]|=S.charCodeAt(d)<<(d%4<<3);return this._finish(C,T),w=u(this._hash),x&&(w=p(w)),this.reset(),w},v.prototype.reset=function(){return this._buff="",this._length=0,this._hash=[1732584193,-271733879,-1732584194,271733878],this},v.prototype.getState=function(){return{buff:this._buff,length:this._length,hash:this._hash.slice()}},v.prototype.setState=function(x){return this._buff=x.buff,this._length=x.length,this._hash=x.hash,this},v.prototype.destroy=function(){delete this._hash,delete this._buff,delete this._length},v.prototype._finish=function(x,S){var T=S,d,C,w;if(x[T>>2]|=128<<(T%4<<3),T>55)for(a(this._hash,x),T=0;T<16;T+=1)x[T]=0;d=this._length*8,d=d.toString(16).match(/(.*?)(.{0,8})$/),C=parseInt(d[2],16),w=parseInt(d[1],16)||0,x[14]=C,x[15]=w,a(this._hash,x)},v.hash=function(x,S){return v.hashBinary(g(x),S)},v.hashBinary=function(x,S){var T=o(x),d=u(T);return S?p(d):d},v.ArrayBuffer=function(){this.reset()},v.ArrayBuffer.prototype.append=function(x){var S=y(this._buff.buffer,x,!0),T=S.length,d;for(this._length+=x.byteLength,d=64;d<=T;d+=64)a(this._hash,s(S.subarray(d-64,d)));return this._buff=d-64<T?new Uint8Array(S.buffer.slice(d-64)):new Uint8Array(0),this},v.ArrayBuffer.prototype.end=function(x){var S=this._buff,T=S.length,d=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],C,w;for(C=0;C<T;C+=1)d[C>>2]|=S[C]<<(C%4<<3);return this._finish(d,T),w=u(this._hash),x&&(w=p(w)),this.reset(),w},v.ArrayBuffer.prototype.reset=function(){return this._buff=new Uint8Array(0),this._length=0,this._hash=[1732584193,-271733879,-1732584194,271733878],this},v.ArrayBuffer.prototype.getState=function(){var x=v.prototype.getState.call(this);return x.buff=h(x.buff),x},v.ArrayBuffer.prototype.setState=function(x){return x.buff=l(x.buff,!0),v.prototype.setState.call(this,x)},v.ArrayBuffer.prototype.destroy=v.prototype.destroy,v.ArrayBuffer.prototype._finish=v.prototype._finish,v.ArrayBuffer.hash=function(x,S){var T=c(new Uint8Array(x)),d=u(T);return S?p(d):d},v})});var Hc=Object.defineProperty,xs=(t,e)=>{let n={};for(var r in t)Hc(n,r,{get:t[r],enumerable:!0});return e||Hc(n,Symbol.toStringTag,{value:"Module"}),n};var Ic={vtkObject:()=>null};function et(t){if(t==null||t.isA)return t;if(!t.vtkClass)return globalThis.console&&globalThis.console.error&&globalThis.console.error("Invalid VTK object"),null;let e=Ic[t.vtkClass];if(!e)return globalThis.console&&globalThis.console.error&&globalThis.console.error(`No vtk class found for Object of type ${t.vtkClass}`),null;let n={...t};Object.keys(n).forEach(a=>{n[a]&&typeof n[a]=="object"&&n[a].vtkClass&&(n[a]=et(n[a]))});let r=e(n);return r&&r.modified&&r.modified(),r}function Cd(t,e){Ic[t]=e}et.register=Cd;var Va=class extends Array{push(){for(let t=0;t<arguments.length;t++)this.includes(arguments[t])||super.push(arguments[t]);return this.length}};var Zc=Hr(La(),1),Ce=xs({EVENT_ABORT:()=>Cs,TYPED_ARRAYS:()=>je,VOID:()=>Jc,_capitalize:()=>Ne,algo:()=>za,capitalize:()=>ka,chain:()=>at,debounce:()=>gf,default:()=>O,event:()=>Wa,formatBytesToProperUnit:()=>of,formatNumbersWithThousandSeparator:()=>cf,get:()=>Oe,getArray:()=>Bn,isVtkObject:()=>ws,keystore:()=>Os,measurePromiseExecution:()=>uf,moveToProtected:()=>sn,newInstance:()=>J,newTypedArray:()=>cr,newTypedArrayFrom:()=>Ua,normalizeWheel:()=>Tf,obj:()=>se,proxy:()=>hf,proxyPropertyMapping:()=>vf,proxyPropertyState:()=>df,requiredParam:()=>Qc,set:()=>Ir,setArray:()=>Ss,setGet:()=>ie,setGetArray:()=>ba,setImmediateVTK:()=>ms,setLoggerFunction:()=>tf,throttle:()=>pf,traverseInstanceTree:()=>Ba,uncapitalize:()=>sf,vtkDebugMacro:()=>Na,vtkErrorMacro:()=>ce,vtkInfoMacro:()=>rf,vtkLogMacro:()=>nf,vtkOnceErrorMacro:()=>af,vtkWarningMacro:()=>Ga}),ys=0,Qc=t=>{throw new Error(`Named parameter '${t}' is missing`)},Jc=Symbol("void");function wd(){return ys}var ef={};function Nn(){}["log","debug","info","warn","error","time","timeEnd","group","groupEnd"].forEach(t=>{ef[t]=Nn});var _a=globalThis.console&&globalThis.console.hasOwnProperty("log")?globalThis.console:ef,an={debug:Nn,error:_a.error||Nn,info:_a.info||Nn,log:_a.log||Nn,warn:_a.warn||Nn};function tf(t,e){an[t]&&(an[t]=e||Nn)}function nf(...t){an.log(...t)}function rf(...t){an.info(...t)}function Na(...t){an.debug(...t)}function ce(...t){an.error(...t)}function Ga(...t){an.warn(...t)}var $c={};function af(t){$c[t]||(an.error(t),$c[t]=!0)}var je=Object.create(null);je.Float32Array=Float32Array;je.Float64Array=Float64Array;je.Uint8Array=Uint8Array;je.Int8Array=Int8Array;je.Uint16Array=Uint16Array;je.Int16Array=Int16Array;je.Uint32Array=Uint32Array;je.Int32Array=Int32Array;je.Uint8ClampedArray=Uint8ClampedArray;try{je.BigInt64Array=BigInt64Array,je.BigUint64Array=BigUint64Array}catch{}function cr(t,...e){return new(je[t]||Float64Array)(...e)}function Ua(t,...e){return(je[t]||Float64Array).from(...e)}function ka(t){return t.charAt(0).toUpperCase()+t.slice(1)}function Ne(t){return ka(t[0]==="_"?t.slice(1):t)}function sf(t){return t.charAt(0).toLowerCase()+t.slice(1)}function of(t,e=2,n=1e3){let r=["TB","GB","MB","KB"],a=Number(t),i="B";for(;a>n;)a/=n,i=r.pop();return`${a.toFixed(e)} ${i}`}function cf(t,e=" "){let n=[],r=t;for(;r>1e3;)n.push(`000${r%1e3}`.slice(-3)),r=Math.floor(r/1e3);return r>0&&n.push(r),n.reverse(),n.join(e)}function ff(t){Object.keys(t).forEach(e=>{Array.isArray(t[e])&&(t[e]=[].concat(t[e]))})}function Od(t){return Object.values(je).some(e=>t instanceof e)}function Rd(t,e){if(t===e)return!0;if(Array.isArray(t)&&Array.isArray(e)){if(t.length!==e.length)return!1;for(let n=0;n<t.length;n++)if(t[n]!==e[n])return!1;return!0}return!1}function Md(t,e){return Object.keys(t).find(n=>t[n]===e)}function ms(t){setTimeout(t,0)}function uf(t,e){let n=performance.now();t.finally(()=>{e(performance.now()-n)})}function se(t={},e={}){ff(e);let n=[];if(Number.isInteger(e.mtime)||(e.mtime=++ys),!("classHierarchy"in e))e.classHierarchy=new Va("vtkObject");else if(!(e.classHierarchy instanceof Va)){let i=new Va;for(let s=0;s<e.classHierarchy.length;s++)i.push(e.classHierarchy[s]);e.classHierarchy=i}function r(i){n[i]=null}function a(i){function s(){r(i)}return Object.freeze({unsubscribe:s})}return t.isDeleted=()=>!!e.deleted,t.modified=i=>{if(e.deleted){ce("instance deleted - cannot call any method");return}i&&i<t.getMTime()||(e.mtime=++ys,n.forEach(s=>s&&s(t)))},t.onModified=i=>{if(e.deleted)return ce("instance deleted - cannot call any method"),null;let s=n.length;return n.push(i),a(s)},t.getMTime=()=>e.mtime,t.isA=i=>{let s=e.classHierarchy.length;for(;s--;)if(e.classHierarchy[s]===i)return!0;return!1},t.getClassName=(i=0)=>e.classHierarchy[e.classHierarchy.length-1-i],t.set=(i={},s=!1,o=!1)=>{let c=!1;return Object.keys(i).forEach(f=>{let u=o?null:t[`set${ka(f)}`];u&&Array.isArray(i[f])&&u.length>1?c=u(...i[f])||c:u?c=u(i[f])||c:(["mtime"].indexOf(f)===-1&&!s&&Ga(`Warning: Set value to model directly ${f}, ${i[f]}`),c=e[f]!==i[f]||c,e[f]=i[f])}),c},t.get=(...i)=>{if(!i.length)return e;let s={};return i.forEach(o=>{s[o]=e[o]}),s},t.getReferenceByName=i=>e[i],t.delete=()=>{Object.keys(e).forEach(i=>delete e[i]),n.forEach((i,s)=>r(s)),e.deleted=!0},t.getState=({preserveTypedArrays:i=!1}={})=>{if(e.deleted)return null;let s={preserveTypedArrays:i},o={...e,vtkClass:t.getClassName()};Object.keys(o).forEach(f=>{o[f]===null||o[f]===void 0||f[0]==="_"?delete o[f]:o[f].isA?o[f]=o[f].getState(s):Array.isArray(o[f])?o[f]=o[f].map(u=>u&&u.isA?u.getState(s):u):Od(o[f])&&(i||(o[f]=Array.from(o[f])))});let c={};return Object.keys(o).sort().forEach(f=>{c[f]=o[f]}),c.mtime&&delete c.mtime,c},t.shallowCopy=(i,s=!1)=>{if(i.getClassName()!==t.getClassName())throw new Error(`Cannot ShallowCopy ${i.getClassName()} into ${t.getClassName()}`);let o=i.get(),c=Object.keys(e).sort();Object.keys(o).sort().forEach(f=>{let u=c.indexOf(f);u===-1?s&&Na(`add ${f} in shallowCopy`):c.splice(u,1),e[f]=o[f]}),c.length&&s&&Na(`Untouched keys: ${c.join(", ")}`),t.modified()},t.toJSON=function(){return t.getState()},t}var Ed={object(t,e,n){return function(){return{...e[n.name]}}}};function Oe(t,e,n){n.forEach(r=>{if(typeof r=="object"){let a=Ed[r.type];a?t[`get${Ne(r.name)}`]=a(t,e,r):t[`get${Ne(r.name)}`]=()=>e[r.name]}else t[`get${Ne(r)}`]=()=>e[r]})}var lf={enum(t,e,n){let r=`_on${Ne(n.name)}Changed`;return a=>{if(typeof a=="string"){if(n.enum[a]!==void 0)return e[n.name]!==n.enum[a]?(e[n.name]=n.enum[a],t.modified(),!0):!1;throw ce(`Set Enum with invalid argument ${n}, ${a}`),new RangeError("Set Enum with invalid string argument")}if(typeof a=="number"){if(e[n.name]!==a){if(Object.keys(n.enum).map(i=>n.enum[i]).indexOf(a)!==-1){let i=e[n.name];return e[n.name]=a,e[r]?.(t,e,a,i),t.modified(),!0}throw ce(`Set Enum outside numeric range ${n}, ${a}`),new RangeError("Set Enum outside numeric range")}return!1}throw ce(`Set Enum with invalid argument (String/Number) ${n}, ${a}`),new TypeError("Set Enum with invalid argument (String/Number)")}},object(t,e,n){n.params?.length===1&&Ga('Setter of type "object" with a single "param" field is not supported');let r=`_on${Ne(n.name)}Changed`;return(...a)=>{let i;if(a.length>1&&n.params?.length?i=n.params.reduce((s,o,c)=>Object.assign(s,{[o]:a[c]}),{}):i=a[0],!(0,Zc.default)(e[n.name],i)){let s=e[n.name];return e[n.name]=i,e[r]?.(t,e,i,s),t.modified(),!0}return!1}}};function Kc(t){if(typeof t=="object"){let e=lf[t.type];if(e)return(n,r)=>e(n,r,t);throw ce(`No setter for field ${t}`),new TypeError("No setter for field")}return function(n,r){let a=`_on${Ne(t)}Changed`;return function(s){if(r.deleted)return ce("instance deleted - cannot call any method"),!1;if(r[t]!==s){let o=r[t.name];return r[t]=s,r[a]?.(n,r,s,o),n.modified(),!0}return!1}}}function Ir(t,e,n){n.forEach(r=>{typeof r=="object"?t[`set${Ne(r.name)}`]=Kc(r)(t,e):t[`set${Ne(r)}`]=Kc(r)(t,e)})}function ie(t,e,n){Oe(t,e,n),Ir(t,e,n)}function Bn(t,e,n){n.forEach(r=>{t[`get${Ne(r)}`]=()=>e[r]?Array.from(e[r]):e[r],t[`get${Ne(r)}ByReference`]=()=>e[r]})}function Ss(t,e,n,r,a=void 0){n.forEach(i=>{if(e[i]&&r&&e[i].length!==r)throw new RangeError(`Invalid initial number of values for array (${i})`);let s=`_on${Ne(i)}Changed`;t[`set${Ne(i)}`]=(...o)=>{if(e.deleted)return ce("instance deleted - cannot call any method"),!1;let c=o,f,u=!1;if(c.length===1&&(c[0]==null||c[0].length>=0)&&(c=c[0],u=!0),c==null)f=e[i]!==c;else{if(r&&c.length!==r)if(c.length<r&&a!==void 0)for(c=Array.from(c),u=!1;c.length<r;)c.push(a);else throw new RangeError(`Invalid number of values for array setter (${i})`);f=e[i]==null||e[i].length!==c.length;for(let g=0;!f&&g<c.length;++g)f=e[i][g]!==c[g];f&&u&&(c=Array.from(c))}if(f){let g=e[i.name];e[i]=c,e[s]?.(t,e,c,g),t.modified()}return f},t[`set${Ne(i)}From`]=o=>{let c=e[i];o.forEach((f,u)=>{c[u]=f})}})}function ba(t,e,n,r,a=void 0){Bn(t,e,n),Ss(t,e,n,r,a)}function sn(t,e,n){for(let r=0;r<n.length;r++){let a=n[r];e[a]!==void 0&&(e[`_${a}`]=e[a],delete e[a])}}function za(t,e,n,r){e.inputData?e.inputData=e.inputData.map(et):e.inputData=[],e.inputConnection?e.inputConnection=e.inputConnection.map(et):e.inputConnection=[],e.output?e.output=e.output.map(et):e.output=[],e.inputArrayToProcess?e.inputArrayToProcess=e.inputArrayToProcess.map(et):e.inputArrayToProcess=[],e.numberOfInputs=n;function a(h,y=0){if(e.deleted){ce("instance deleted - cannot call any method");return}if(y>=e.numberOfInputs){ce(`algorithm ${t.getClassName()} only has ${e.numberOfInputs} input ports. To add more input ports, use addInputData()`);return}(e.inputData[y]!==h||e.inputConnection[y])&&(e.inputData[y]=h,e.inputConnection[y]=null,t.modified&&t.modified())}function i(h=0){return e.inputConnection[h]&&(e.inputData[h]=e.inputConnection[h]()),e.inputData[h]}function s(h,y=0){if(e.deleted){ce("instance deleted - cannot call any method");return}if(y>=e.numberOfInputs){let p=`algorithm ${t.getClassName()} only has `;p+=`${e.numberOfInputs}`,p+=" input ports. To add more input ports, use addInputConnection()",ce(p);return}e.inputData[y]=null,e.inputConnection[y]=h}function o(h=0){return e.inputConnection[h]}function c(){let h=e.numberOfInputs;for(;h&&!e.inputData[h-1]&&!e.inputConnection[h-1];)h--;return h===e.numberOfInputs&&e.numberOfInputs++,h}function f(h){if(e.deleted){ce("instance deleted - cannot call any method");return}s(h,c())}function u(h){if(e.deleted){ce("instance deleted - cannot call any method");return}a(h,c())}function g(h=0){return e.deleted?(ce("instance deleted - cannot call any method"),null):(t.shouldUpdate()&&t.update(),e.output[h])}t.shouldUpdate=()=>{let h=t.getMTime(),y=1/0,p=r;for(;p--;){if(!e.output[p]||e.output[p].isDeleted())return!0;let v=e.output[p].getMTime();if(v<h)return!0;v<y&&(y=v)}for(p=e.numberOfInputs;p--;)if(e.inputConnection[p]?.filter.shouldUpdate()||t.getInputData(p)?.getMTime()>y)return!0;return!1};function l(h=0){let y=()=>g(h);return y.filter=t,y}if(e.numberOfInputs){let h=e.numberOfInputs;for(;h--;)e.inputData.push(null),e.inputConnection.push(null);t.setInputData=a,t.setInputConnection=s,t.addInputData=u,t.addInputConnection=f,t.getInputData=i,t.getInputConnection=o}r&&(t.getOutputData=g,t.getOutputPort=l),t.update=()=>{let h=[];if(e.numberOfInputs){let y=0;for(;y<e.numberOfInputs;)h[y]=t.getInputData(y),y++}t.requestData&&!t.isDeleted()&&t.shouldUpdate()&&t.requestData(h,e.output)},t.getNumberOfInputPorts=()=>e.numberOfInputs,t.getNumberOfOutputPorts=()=>r||e.output.length,t.getInputArrayToProcess=h=>{let y=e.inputArrayToProcess[h],p=e.inputData[h];return y&&p?p[`get${y.fieldAssociation}`]().getArray(y.arrayName):null},t.setInputArrayToProcess=(h,y,p,v="Scalars")=>{for(;e.inputArrayToProcess.length<h;)e.inputArrayToProcess.push(null);e.inputArrayToProcess[h]={arrayName:y,fieldAssociation:p,attributeType:v}}}var Cs=Symbol("Event abort");function Wa(t,e,n){let r=[],a=t.delete,i=1;function s(f){for(let u=0;u<r.length;++u){let[g]=r[u];if(g===f){r.splice(u,1);return}}}function o(f){function u(){s(f)}return Object.freeze({unsubscribe:u})}function c(){if(e.deleted){ce("instance deleted - cannot call any method");return}let f=r.slice();for(let u=0;u<f.length;++u){let[,g,l]=f[u];if(g){if(l<0)setTimeout(()=>g.apply(t,arguments),1-l);else if(g.apply(t,arguments)===Cs)break}}}t[`invoke${Ne(n)}`]=c,t[`on${Ne(n)}`]=(f,u=0)=>{if(!f.apply)return console.error(`Invalid callback for event ${n}`),null;if(e.deleted)return ce("instance deleted - cannot call any method"),null;let g=i++;return r.push([g,f,u]),r.sort((l,h)=>h[2]-l[2]),o(g)},t.delete=()=>{a(),r.forEach(([f])=>s(f))}}function J(t,e){let n=(r={})=>{let a={},i={};return t(i,a,r),Object.freeze(i)};return e&&et.register(e,n),n}function at(...t){return(...e)=>t.filter(n=>!!n).map(n=>n(...e))}function ws(t){return t&&t.isA&&t.isA("vtkObject")}function Ba(t,e,n=[],r=[]){if(ws(t)){if(r.indexOf(t)>=0)return n;r.push(t);let a=e(t);a!==void 0&&n.push(a);let i=t.get();Object.keys(i).forEach(s=>{let o=i[s];Array.isArray(o)?o.forEach(c=>{Ba(c,e,n,r)}):Ba(o,e,n,r)})}return n}function gf(t,e,n){let r,a=(...i)=>{let s=this,o=()=>{r=null,n||t.apply(s,i)},c=n&&!r;clearTimeout(r),r=setTimeout(o,e),c&&t.apply(s,i)};return a.cancel=()=>clearTimeout(r),a}function pf(t,e){let n=!1,r=null;function a(){n=!1,r!==null&&(i(...r),r=null)}function i(...s){if(n){r=s;return}n=!0,t(...s),setTimeout(a,e)}return i}function Os(t,e,n={}){e.keystore=Object.assign(e.keystore||{},n),t.setKey=(r,a)=>{e.keystore[r]=a},t.getKey=r=>e.keystore[r],t.getAllKeys=()=>Object.keys(e.keystore),t.deleteKey=r=>delete e.keystore[r],t.clearKeystore=()=>t.getAllKeys().forEach(r=>delete e.keystore[r])}var Dd=1,Fa="__root__";function hf(t,e){Os(t,e);let n=t.delete;e.proxyId=`${Dd++}`,e.ui=JSON.parse(JSON.stringify(e.ui||[])),Oe(t,e,["proxyId","proxyGroup","proxyName"]),ie(t,e,["proxyManager"]);let r={},a={};function i(f,u){a[u]||(a[u]=[]);let g=a[u];for(let l=0;l<f.length;l++)g.push(f[l].name),r[f[l].name]=f[l],f[l].children&&f[l].children.length&&i(f[l].children,f[l].name)}i(e.ui,Fa),t.updateUI=f=>{e.ui=JSON.parse(JSON.stringify(f||[])),Object.keys(r).forEach(u=>delete r[u]),Object.keys(a).forEach(u=>delete a[u]),i(e.ui,Fa),t.modified()};function s(f=Fa){return a[f]}t.updateProxyProperty=(f,u)=>{let g=r[f];g?Object.assign(g,u):r[f]={...u}},t.activate=()=>{if(e.proxyManager){let f=`setActive${Ne(t.getProxyGroup().slice(0,-1))}`;e.proxyManager[f]&&e.proxyManager[f](t)}},e.propertyLinkSubscribers={},t.registerPropertyLinkForGC=(f,u)=>{u in e.propertyLinkSubscribers||(e.propertyLinkSubscribers[u]=[]),e.propertyLinkSubscribers[u].push(f)},t.gcPropertyLinks=f=>{let u=e.propertyLinkSubscribers[f]||[];for(;u.length;)u.pop().unbind(t)},e.propertyLinkMap={},t.getPropertyLink=(f,u=!1)=>{if(e.propertyLinkMap[f])return e.propertyLinkMap[f];let g=null,l=[],h=0,y=!1;function p(d,C=!1){if(y)return null;let w=[],D=null;for(h=l.length;h--;){let M=l[h];M.instance===d?D=M:w.push(M)}if(!D)return null;let m=D.instance[`get${Ne(D.propertyName)}`]();if(!Rd(m,g)||C){for(g=m,y=!0;w.length;){let M=w.pop();M.instance.set({[M.propertyName]:g})}y=!1}return e.propertyLinkMap[f].persistent&&(e.propertyLinkMap[f].value=m),m}function v(d,C){let w=[];for(h=l.length;h--;){let D=l[h];D.instance===d&&(D.propertyName===C||C===void 0)&&(D.subscription.unsubscribe(),w.push(h))}for(;w.length;)l.splice(w.pop(),1)}function x(d,C,w=!1){let D=d.onModified(p),m=l[0];return l.push({instance:d,propertyName:C,subscription:D}),w&&(e.propertyLinkMap[f].persistent&&e.propertyLinkMap[f].value!==void 0?d.set({[C]:e.propertyLinkMap[f].value}):m&&p(m.instance,!0)),{unsubscribe:()=>v(d,C)}}function S(){for(;l.length;)l.pop().subscription.unsubscribe()}let T={bind:x,unbind:v,unsubscribe:S,persistent:u};return e.propertyLinkMap[f]=T,T};function o(f=Fa){let u=[],g=e.proxyId,l=s(f)||[];for(let h=0;h<l.length;h++){let y=l[h],p=t[`get${Ne(y)}`],v={id:g,name:y,value:p?p():void 0},x=o(y);x.length&&(v.children=x),u.push(v)}return u}t.listPropertyNames=()=>o().map(f=>f.name),t.getPropertyByName=f=>o().find(u=>u.name===f),t.getPropertyDomainByName=f=>(r[f]||{}).domain,t.getProxySection=()=>({id:e.proxyId,name:e.proxyGroup,ui:e.ui,properties:o()}),t.delete=()=>{let f=Object.keys(e.propertyLinkMap),u=f.length;for(;u--;)e.propertyLinkMap[f[u]].unsubscribe();Object.keys(e.propertyLinkSubscribers).forEach(t.gcPropertyLinks),n()},t.getState=()=>null;function c(){if(e.links)for(let f=0;f<e.links.length;f++){let{link:u,property:g,persistent:l,updateOnBind:h,type:y}=e.links[f];if(y==="application"){let p=e.proxyManager.getPropertyLink(u,l);t.registerPropertyLinkForGC(p,"application"),p.bind(t,g,h)}}}ms(c)}function vf(t,e,n){let r=t.delete,a=[],i=Object.keys(n),s=i.length;for(;s--;){let o=i[s],{modelKey:c,property:f,modified:u=!0}=n[o],g=Ne(f),l=Ne(o);t[`get${l}`]=e[c][`get${g}`],t[`set${l}`]=e[c][`set${g}`],u&&a.push(e[c].onModified(t.modified))}t.delete=()=>{for(;a.length;)a.pop().unsubscribe();r()}}function df(t,e,n={},r={}){e.this=t;function a(o){let c=Object.keys(o),f=c.length;for(;f--;){let u=c[f];e[u].set(o[u])}}let i=Object.keys(r),s=i.length;for(;s--;){let o=i[s];e[o]=r[o];let c=n[o];t[`set${Ne(o)}`]=f=>{if(f!==e[o]){e[o]=f;let u=c[f];a(u),t.modified()}}}i.length&&Oe(t,e,i)}var Xc=10,Yc=40,qc=800;function Tf(t){let e=0,n=0,r=0,a=0;return"detail"in t&&(n=t.detail),"wheelDelta"in t&&(n=-t.wheelDelta/120),"wheelDeltaY"in t&&(n=-t.wheelDeltaY/120),"wheelDeltaX"in t&&(e=-t.wheelDeltaX/120),"axis"in t&&t.axis===t.HORIZONTAL_AXIS&&(e=n,n=0),r=e*Xc,a=n*Xc,"deltaY"in t&&(a=t.deltaY),"deltaX"in t&&(r=t.deltaX),(r||a)&&t.deltaMode&&(t.deltaMode===1?(r*=Yc,a*=Yc):(r*=qc,a*=qc)),r&&!e&&(e=r<1?-1:1),a&&!n&&(n=a<1?-1:1),{spinX:e,spinY:n||e,pixelX:r,pixelY:a||r}}var O={algo:za,capitalize:ka,chain:at,debounce:gf,enumToString:Md,event:Wa,EVENT_ABORT:Cs,formatBytesToProperUnit:of,formatNumbersWithThousandSeparator:cf,get:Oe,getArray:Bn,getCurrentGlobalMTime:wd,isVtkObject:ws,keystore:Os,measurePromiseExecution:uf,moveToProtected:sn,newInstance:J,newTypedArray:cr,newTypedArrayFrom:Ua,normalizeWheel:Tf,obj:se,proxy:hf,proxyPropertyMapping:vf,proxyPropertyState:df,safeArrays:ff,set:Ir,setArray:Ss,setGet:ie,setGetArray:ba,setImmediate:ms,setLoggerFunction:tf,throttle:pf,traverseInstanceTree:Ba,TYPED_ARRAYS:je,uncapitalize:sf,VOID:Jc,vtkDebugMacro:Na,vtkErrorMacro:ce,vtkInfoMacro:rf,vtkLogMacro:nf,vtkOnceErrorMacro:af,vtkWarningMacro:Ga,objectSetterMap:lf,requiredParam:Qc};var on=[1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1],xf=[1,0,0,0,1,0,0,0,1],fr=1e-6;var kf=Hr(Gf(),1);var{vtkErrorMacro:bf,vtkWarningMacro:Un}=O,zf=0,Uf=20;function Kr(t){return()=>bf(`vtkMath::${t} - NOT IMPLEMENTED`)}function $r(t,e,n,r){let a;for(let i=0;i<e;i++)a=t[n*e+i],t[n*e+i]=t[r*e+i],t[r*e+i]=a}function jr(t,e,n,r){let a;for(let i=0;i<e;i++)a=t[i*e+n],t[i*e+n]=t[i*e+r],t[i*e+r]=a}function we(t=3){let e=Array(t);for(let n=0;n<t;++n)e[n]=0;return e}var Gd=()=>Math.PI;function Ud(t,e){return e>1023?t*2**1023*2**(e-1023):e<-1074?t*2**-1074*2**(e+1074):t*2**e}function Me(t){return t/180*Math.PI}function jt(t){return t*180/Math.PI}var{round:lr,floor:Xr,ceil:kd,min:bd,max:zd}=Math;function Wd(t,e=0,n=1){let r=1/0;for(let a=e,i=t.length;a<i;a+=n)t[a]<r&&(r=t[a]);return r}function Ad(t,e=0,n=1){let r=-1/0;for(let a=e,i=t.length;a<i;a+=n)r<t[a]&&(r=t[a]);return r}function Pd(t,e=0,n=1){let r=1/0,a=-1/0;for(let i=e,s=t.length;i<s;i+=n)t[i]<r&&(r=t[i]),a<t[i]&&(a=t[i]);return[r,a]}var Hd=Kr("ceilLog2"),Id=Kr("factorial");function Rt(t){let e=1;for(;e<t;)e*=2;return e}function jd(t){return t===Rt(t)}function $d(t,e){let n=1;for(let r=1;r<=e;++r)n*=(t-r+1)/r;return Math.floor(n)}function Kd(t,e){if(t<e)return 0;let n=we(e);for(let r=0;r<e;++r)n[r]=r;return n}function Xd(t,e,n){let r=0;for(let a=e-1;a>=0;--a)if(n[a]<t-e+a){let i=n[a]+1;for(;a<e;)n[a++]=i++;r=1;break}return r}function Yd(t){(0,kf.default)(`${t}`,{global:!0}),zf=t}function qd(){return zf}function Zd(t=0,e=1){return t+(e-t)*Math.random()}var Qd=Kr("gaussian");function $t(t,e,n){return n[0]=t[0]+e[0],n[1]=t[1]+e[1],n[2]=t[2]+e[2],n}function Le(t,e,n){return n[0]=t[0]-e[0],n[1]=t[1]-e[1],n[2]=t[2]-e[2],n}function Wf(t,e){return t[0]*=e,t[1]*=e,t[2]*=e,t}function Af(t,e){return t[0]*=e,t[1]*=e,t}function Ia(t,e,n,r){return r[0]=t[0]+e[0]*n,r[1]=t[1]+e[1]*n,r[2]=t[2]+e[2]*n,r}function Jd(t,e,n,r){return r[0]=t[0]+e[0]*n,r[1]=t[1]+e[1]*n,r}function q(t,e){return t[0]*e[0]+t[1]*e[1]+t[2]*e[2]}function eT(t,e,n){n[0]=t[0]*e[0],n[1]=t[0]*e[1],n[2]=t[0]*e[2],n[3]=t[1]*e[0],n[4]=t[1]*e[1],n[5]=t[1]*e[2],n[6]=t[2]*e[0],n[7]=t[2]*e[1],n[8]=t[2]*e[2]}function Ue(t,e,n){let r=t[1]*e[2]-t[2]*e[1],a=t[2]*e[0]-t[0]*e[2],i=t[0]*e[1]-t[1]*e[0];return n[0]=r,n[1]=a,n[2]=i,n}function ut(t,e=3){switch(e){case 1:return Math.abs(t);case 2:return Math.sqrt(t[0]*t[0]+t[1]*t[1]);case 3:return Math.sqrt(t[0]*t[0]+t[1]*t[1]+t[2]*t[2]);default:{let n=0;for(let r=0;r<e;r++)n+=t[r]*t[r];return Math.sqrt(n)}}}function $e(t){let e=ut(t);return e!==0&&(t[0]/=e,t[1]/=e,t[2]/=e),e}function Pf(t){let e=ut(t,3);return e!==0&&(t[0]/=e,t[1]/=e,t[2]/=e,t[3]/=e),e}function tT(t,e,n,r){let a=t[0]*t[0],i=t[1]*t[1],s=t[2]*t[2],o=Math.sqrt(a+i+s),c,f,u;a>i&&a>s?(c=0,f=1,u=2):i>s?(c=1,f=2,u=0):(c=2,f=0,u=1);let g=t[c]/o,l=t[f]/o,h=t[u]/o,y=Math.sqrt(g*g+h*h);if(r!==0){let p=Math.sin(r),v=Math.cos(r);e&&(e[c]=(h*v-g*l*p)/y,e[f]=p*y,e[u]=(-(g*v)-l*h*p)/y),n&&(n[c]=(-(h*p)-g*l*v)/y,n[f]=v*y,n[u]=(g*p-l*h*v)/y)}else e&&(e[c]=h/y,e[f]=0,e[u]=-g/y),n&&(n[c]=-g*l/y,n[f]=y,n[u]=-l*h/y)}function nT(t,e,n){let r=q(e,e);if(r===0)return n[0]=0,n[1]=0,n[2]=0,!1;let a=q(t,e)/r;for(let i=0;i<3;i++)n[i]=e[i];return Wf(n,a),!0}function _s(t,e){return t[0]*e[0]+t[1]*e[1]}function rT(t,e,n){let r=_s(e,e);if(r===0)return n[0]=0,n[1]=0,!1;let a=_s(t,e)/r;for(let i=0;i<2;i++)n[i]=e[i];return Af(n,a),!0}function ze(t,e){return(t[0]-e[0])*(t[0]-e[0])+(t[1]-e[1])*(t[1]-e[1])+(t[2]-e[2])*(t[2]-e[2])}function aT(t,e){let n=[0,0,0];return Ue(t,e,n),Math.atan2(ut(n),q(t,e))}function iT(t,e,n){let r=Math.abs(t-n);return 1/Math.sqrt(2*Math.PI*e)*Math.exp(-(r**2)/(2*e))}function sT(t,e,n){let r=Math.abs(t-n);return Math.exp(-(r**2)/(2*e))}function oT(t,e,n){n[0]=t[0]*e[0],n[1]=t[0]*e[1],n[2]=t[1]*e[0],n[3]=t[1]*e[1]}function Hf(t){return Math.sqrt(t[0]*t[0]+t[1]*t[1])}function Gs(t){let e=Hf(t);return e!==0&&(t[0]/=e,t[1]/=e),e}function Re(...t){return t.length===2?t[0][0]*t[1][1]-t[1][0]*t[0][1]:t.length===4?t[0]*t[3]-t[1]*t[2]:NaN}function cT(t,e){let n,r,a,i=[0,0,0];for(let s=0;s<3;s++)a=Math.abs(t[s*3]),(r=Math.abs(t[s*3+1]))>a&&(a=r),(r=Math.abs(t[s*3+2]))>a&&(a=r),i[s]=1/a;a=i[0]*Math.abs(t[0]),n=0,(r=i[1]*Math.abs(t[3]))>=a&&(a=r,n=1),(r=i[2]*Math.abs(t[6]))>=a&&(n=2),n!==0&&($r(t,3,n,0),i[n]=i[0]),e[0]=n,t[3]/=t[0],t[6]/=t[0],t[4]-=t[3]*t[1],t[7]-=t[6]*t[1],a=i[1]*Math.abs(t[4]),n=1,(r=i[2]*Math.abs(t[7]))>=a&&(n=2,$r(t,3,1,2),i[2]=i[1]),e[1]=n,t[7]/=t[4],t[5]-=t[3]*t[2],t[8]-=t[6]*t[2]+t[7]*t[5],e[2]=2}function fT(t,e,n){let r=n[e[0]];n[e[0]]=n[0],n[0]=r,r=n[e[1]],n[e[1]]=n[1],n[1]=r-t[3]*n[0],r=n[e[2]],n[e[2]]=n[2],n[2]=r-t[6]*n[0]-t[7]*n[1],n[2]/=t[8],n[1]=(n[1]-t[5]*n[2])/t[4],n[0]=(n[0]-t[1]*n[1]-t[2]*n[2])/t[0]}function uT(t,e,n){let r=t[0],a=t[1],i=t[2],s=t[3],o=t[4],c=t[5],f=t[6],u=t[7],g=t[8],l=+Re(o,u,c,g),h=-Re(s,f,c,g),y=+Re(s,f,o,u),p=-Re(a,u,i,g),v=+Re(r,f,i,g),x=-Re(r,f,a,u),S=+Re(a,o,i,c),T=-Re(r,s,i,c),d=+Re(r,s,a,o),C=r*l+a*h+i*y,w=l*e[0]+p*e[1]+S*e[2],D=h*e[0]+v*e[1]+T*e[2],m=y*e[0]+x*e[1]+d*e[2];n[0]=w/C,n[1]=D/C,n[2]=m/C}function lT(t,e,n){let r=t[0]*e[0]+t[1]*e[1]+t[2]*e[2],a=t[3]*e[0]+t[4]*e[1]+t[5]*e[2],i=t[6]*e[0]+t[7]*e[1]+t[8]*e[2];n[0]=r,n[1]=a,n[2]=i}function Fs(t,e,n){let r=[...t],a=[...e];for(let i=0;i<3;i++)n[i]=r[0]*a[i]+r[1]*a[i+3]+r[2]*a[i+6],n[i+3]=r[3]*a[i]+r[4]*a[i+3]+r[5]*a[i+6],n[i+6]=r[6]*a[i]+r[7]*a[i+3]+r[8]*a[i+6]}function gT(t,e,n,r,a,i,s){r!==a&&bf("Number of columns of A must match number of rows of B.");let o=[...t],c=[...e];for(let f=0;f<n;f++)for(let u=0;u<i;u++){s[f*i+u]=0;for(let g=0;g<r;g++)s[f*i+u]+=o[f*r+g]*c[u+i*g]}}function ur(t,e){let n;n=t[3],e[3]=t[1],e[1]=n,n=t[6],e[6]=t[2],e[2]=n,n=t[7],e[7]=t[5],e[5]=n,e[0]=t[0],e[4]=t[4],e[8]=t[8]}function pT(t,e){let n=t[0],r=t[1],a=t[2],i=t[3],s=t[4],o=t[5],c=t[6],f=t[7],u=t[8],g=+Re(s,f,o,u),l=-Re(i,c,o,u),h=+Re(i,c,s,f),y=-Re(r,f,a,u),p=+Re(n,c,a,u),v=-Re(n,c,r,f),x=+Re(r,s,a,o),S=-Re(n,i,a,o),T=+Re(n,i,r,s),d=n*g+r*l+a*h;d===0&&Un("Matrix has 0 determinant"),e[0]=g/d,e[3]=l/d,e[6]=h/d,e[1]=y/d,e[4]=p/d,e[7]=v/d,e[2]=x/d,e[5]=S/d,e[8]=T/d}function ja(t){return t[0]*t[4]*t[8]+t[3]*t[7]*t[2]+t[6]*t[1]*t[5]-t[0]*t[7]*t[5]-t[3]*t[1]*t[8]-t[6]*t[4]*t[2]}function If(t,e,n=fr){if(t.length!==e.length)return!1;function r(a,i){return Math.abs(a-e[i])<=n}return t.every(r)}var cn=If;function jf(t){for(let e=0;e<3;e++)t[e*3]=t[e*3+1]=t[e*3+2]=0,t[e*3+e]=1}function $f(t,e){for(let n=0;n<t;n++){for(let r=0;r<t;r++)e[n*t+r]=0;e[n*t+n]=1}return e}function hT(t,e=fr){return cn(t,on,e)}function vT(t,e=fr){return cn(t,xf,e)}function Kf(t,e){let n=t[0]*t[0],r=t[0]*t[1],a=t[0]*t[2],i=t[0]*t[3],s=t[1]*t[1],o=t[2]*t[2],c=t[3]*t[3],f=t[1]*t[2],u=t[1]*t[3],g=t[2]*t[3],l=s+o+c,h=1/(n+l),y=(n-l)*h;h*=2,e[0]=s*h+y,e[3]=(f+i)*h,e[6]=(u-a)*h,e[1]=(f-i)*h,e[4]=o*h+y,e[7]=(g+r)*h,e[2]=(u+a)*h,e[5]=(g-r)*h,e[8]=c*h+y}function Ha(t,e=0){if(!`${t}`.includes("e"))return+`${Math.round(`${t}e+${e}`)}e-${e}`;let n=`${t}`.split("e"),r="";return+n[1]+e>0&&(r="+"),+`${Math.round(`${+n[0]}e${r}${+n[1]+e}`)}e-${e}`}function $a(t,e=[0,0,0],n=0){return e[0]=Ha(t[0],n),e[1]=Ha(t[1],n),e[2]=Ha(t[2],n),e}function Yr(t,e,n,r){let a,i,s,o,c,f,u,g,l,h,y,p,v,x,S,T,d=we(e),C=we(e),w=(m,M,R)=>{x=m[M],v=m[R],m[M]=x-p*(v+x*h),m[R]=v+p*(x-v*h)};for($f(e,r),c=0;c<e;c++)d[c]=n[c]=t[c+c*e],C[c]=0;for(a=0;a<Uf;a++){for(y=0,c=0;c<e-1;c++)for(o=c+1;o<e;o++)y+=Math.abs(t[c*e+o]);if(y===0)break;for(a<3?u=.2*y/(e*e):u=0,c=0;c<e-1;c++)for(o=c+1;o<e;o++)if(x=100*Math.abs(t[c*e+o]),a>3&&Math.abs(n[c])+x===Math.abs(n[c])&&Math.abs(n[o])+x===Math.abs(n[o]))t[c*e+o]=0;else if(Math.abs(t[c*e+o])>u){for(v=n[o]-n[c],Math.abs(v)+x===Math.abs(v)?l=t[c*e+o]/v:(g=.5*v/t[c*e+o],l=1/(Math.abs(g)+Math.sqrt(1+g*g)),g<0&&(l=-l)),S=1/Math.sqrt(1+l*l),p=l*S,h=p/(1+S),v=l*t[c*e+o],C[c]-=v,C[o]+=v,n[c]-=v,n[o]+=v,t[c*e+o]=0,i=0;i<=c-1;i++)w(t,i*e+c,i*e+o);for(i=c+1;i<=o-1;i++)w(t,c*e+i,i*e+o);for(i=o+1;i<e;i++)w(t,c*e+i,o*e+i);for(i=0;i<e;i++)w(r,i*e+c,i*e+o)}for(c=0;c<e;c++)d[c]+=C[c],n[c]=d[c],C[c]=0}if(a>=Uf)return Un("vtkMath::Jacobi: Error extracting eigenfunctions"),0;for(i=0;i<e-1;i++){for(s=i,T=n[s],a=i+1;a<e;a++)(n[a]>=T||Math.abs(n[a]-T)<1e-12)&&(s=a,T=n[s]);s!==i&&(n[s]=n[i],n[i]=T,jr(r,e,i,s))}let D=(e>>1)+(e&1);for(f=0,a=0;a<e*e;a++)r[a]>=0&&f++;if(f<D)for(a=0;a<e;a++)r[a*e+i]*=-1;return 1}function Xf(t,e){let n=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0];n[0]=t[0]+t[4]+t[8],n[5]=t[0]-t[4]-t[8],n[10]=-t[0]+t[4]-t[8],n[15]=-t[0]-t[4]+t[8],n[1]=n[4]=t[7]-t[5],n[2]=n[8]=t[2]-t[6],n[3]=n[12]=t[3]-t[1],n[6]=n[9]=t[3]+t[1],n[7]=n[13]=t[2]+t[6],n[11]=n[14]=t[7]+t[5];let r=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],a=[0,0,0,0];Yr([...n],4,a,r),e[0]=r[0],e[1]=r[4],e[2]=r[8],e[3]=r[12]}function dT(t,e,n){let r=t[0]*e[0],a=t[0]*e[1],i=t[0]*e[2],s=t[0]*e[3],o=t[1]*e[0],c=t[1]*e[1],f=t[1]*e[2],u=t[1]*e[3],g=t[2]*e[0],l=t[2]*e[1],h=t[2]*e[2],y=t[2]*e[3],p=t[3]*e[0],v=t[3]*e[1],x=t[3]*e[2],S=t[3]*e[3];n[0]=r-c-h-S,n[1]=a+o+y-x,n[2]=i-u+g+v,n[3]=s+f-l+p}function Yf(t,e){for(let l=0;l<9;l++)e[l]=t[l];let n=we(3),r=we(3),a;for(let l=0;l<3;l++){let h=Math.abs(e[l*3]),y=Math.abs(e[l*3+1]),p=Math.abs(e[l*3+2]);a=y>h?y:h,a=p>a?p:a,n[l]=1,a!==0&&(n[l]/=a)}let i=Math.abs(e[0])*n[0],s=Math.abs(e[3])*n[1],o=Math.abs(e[6])*n[2];r[0]=0,a=i,s>=a&&(a=s,r[0]=1),o>=a&&(r[0]=2),r[0]!==0&&(jr(e,3,r[0],0),n[r[0]]=n[0]);let c=Math.abs(e[4])*n[1],f=Math.abs(e[7])*n[2];r[1]=1,a=c,f>=a&&(r[1]=2,jr(e,3,1,2)),r[2]=2;let u=0;if(ja(e)<0){u=1;for(let l=0;l<9;l++)e[l]=-e[l]}let g=we(4);if(Xf(e,g),Kf(g,e),u)for(let l=0;l<9;l++)e[l]=-e[l];r[1]!==1&&jr(e,3,r[1],1),r[0]!==0&&jr(e,3,r[0],0)}function qf(t,e,n){let r,a,i,s,o,c;if(Yr([...t],3,e,n),e[0]===e[1]&&e[0]===e[2]){jf(n);return}for(ur(n,n),r=0;r<3;r++)if(e[(r+1)%3]===e[(r+2)%3]){for(c=Math.abs(n[r*3]),s=0,a=1;a<3;a++)c<(o=Math.abs(n[r*3+a]))&&(c=o,s=a);s!==r&&(o=e[s],e[s]=e[r],e[r]=o,$r(n,3,r,s)),n[s*3+s]<0&&(n[s*3]=-n[s*3],n[s*3+1]=-n[s*3+1],n[s*3+2]=-n[s*3+2]),a=(s+1)%3,i=(s+2)%3,n[a*3]=0,n[a*3+1]=0,n[a*3+2]=0,n[a*3+a]=1;let f=Ue([n[s*3],n[s*3+1],n[s*3+2]],[n[a*3],n[a*3+1],n[a*3+2]],[]);$e(f);let u=Ue(f,[n[s*3],n[s*3+1],n[s*3+2]],[]);for(let g=0;g<3;g++)n[i*3+g]=f[g],n[a*3+g]=u[g];ur(n,n);return}for(c=Math.abs(n[0]),s=0,r=1;r<3;r++)c<(o=Math.abs(n[r*3]))&&(c=o,s=r);if(s!==0){let f=e[s];e[s]=e[0],e[0]=f,$r(n,3,s,0)}if(Math.abs(n[4])<Math.abs(n[7])){let f=e[2];e[2]=e[1],e[1]=f,$r(n,3,1,2)}for(r=0;r<2;r++)n[r*3+r]<0&&(n[r*3]=-n[r*3],n[r*3+1]=-n[r*3+1],n[r*3+2]=-n[r*3+2]);ja(n)<0&&(n[6]=-n[6],n[7]=-n[7],n[8]=-n[8]),ur(n,n)}function TT(t,e,n,r){let a,i=[...t],s=ja(i);if(s<0)for(a=0;a<9;a++)i[a]=-i[a];Yf(i,e),ur(i,i),Fs(i,e,r),qf(r,n,r),Fs(e,r,e),ur(r,r),s<0&&(n[0]=-n[0],n[1]=-n[1],n[2]=-n[2])}function Us(t,e,n){let r,a,i,s,o=0,c,f,u,g=we(n);for(r=0;r<n;r++){for(s=0,a=0;a<n;a++)(u=Math.abs(t[r*n+a]))>s&&(s=u);if(s===0)return Un("Unable to factor linear system"),0;g[r]=1/s}for(a=0;a<n;a++){for(r=0;r<a;r++){for(c=t[r*n+a],i=0;i<r;i++)c-=t[r*n+i]*t[i*n+a];t[r*n+a]=c}for(s=0,r=a;r<n;r++){for(c=t[r*n+a],i=0;i<a;i++)c-=t[r*n+i]*t[i*n+a];t[r*n+a]=c,(f=g[r]*Math.abs(c))>=s&&(s=f,o=r)}if(a!==o){for(i=0;i<n;i++)f=t[o*n+i],t[o*n+i]=t[a*n+i],t[a*n+i]=f;g[o]=g[a]}if(e[a]=o,Math.abs(t[a*n+a])<=1e-12)return Un("Unable to factor linear system"),0;if(a!==n-1)for(f=1/t[a*n+a],r=a+1;r<n;r++)t[r*n+a]*=f}return 1}function ks(t,e,n,r){let a,i,s,o,c;for(s=-1,a=0;a<r;a++){if(o=e[a],c=n[o],n[o]=n[a],s>=0)for(i=s;i<=a-1;i++)c-=t[a*r+i]*n[i];else c!==0&&(s=a);n[a]=c}for(a=r-1;a>=0;a--){for(c=n[a],i=a+1;i<r;i++)c-=t[a*r+i]*n[i];n[a]=c/t[a*r+a]}}function bs(t,e,n){if(n===2){let a=we(2),i=Re(t[0],t[1],t[2],t[3]);return i===0?0:(a[0]=(t[3]*e[0]-t[1]*e[1])/i,a[1]=(-(t[2]*e[0])+t[0]*e[1])/i,e[0]=a[0],e[1]=a[1],1)}if(n===1)return t[0]===0?0:(e[0]/=t[0],1);let r=we(n);return Us(t,r,n)===0?0:(ks(t,r,e,n),1)}function Ka(t,e,n,r=null,a=null){let i=r||we(n),s=a||we(n);if(Us(t,i,n,s)===0)return null;for(let o=0;o<n;o++){for(let c=0;c<n;c++)s[c]=0;s[o]=1,ks(t,i,s,n);for(let c=0;c<n;c++)e[c*n+o]=s[c]}return e}function xT(t,e){let n=+Number.MAX_VALUE,r=-Number.MAX_VALUE;for(let a=0;a<e;a++)for(let i=a;i<e;i++)Math.abs(t[a*e+i])>r&&(r=Math.abs(t[a*e+i]));for(let a=0;a<e;a++)Math.abs(t[a*e+a])<n&&(n=Math.abs(t[a*e+a]));return n===0?Number.MAX_VALUE:r/n}function yT(t,e,n){return Yr(t,3,e,n)}function Ns(t,e,n,r){if(t<n)return Un("Insufficient number of samples. Underdetermined."),0;let a,i,s,o=we(n*n),c=we(n),f=we(n*n);for(s=0;s<t;s++)for(a=0;a<n;a++)for(i=a;i<n;i++)o[a*n+i]+=e[s*n+a]*e[s*n+i];for(a=0;a<n;a++)for(i=0;i<a;i++)o[a*n+i]=o[i*n+a];for(Yr(o,n,c,f),a=0;a<n;a++)r[a]=f[a*n+n-1];return 1}function mT(t,e,n,r,a,i,s=!0){if(t<n||t<a)return Un("Insufficient number of samples. Underdetermined."),0;let o=we(a),c=1,f,u=0,g,l,h,y=0;if(s){for(l=0;l<a;l++)o[l]=1;for(g=0;g<t;g++)for(l=0;l<a;l++)Math.abs(r[g*a+l])>1e-12&&(c=0,o[l]=0);if(c&&a===1)return Un("Detected homogeneous system (Y=0), calling SolveHomogeneousLeastSquares()"),Ns(t,e,n,i);if(c)y=1;else for(l=0;l<a;l++)o[l]&&(y=1)}y&&(f=we(n),u=Ns(t,e,n,f));let p=we(n*n),v=we(n*n),x=we(n*a);for(h=0;h<t;h++)for(g=0;g<n;g++){for(l=g;l<n;l++)p[g*n+l]+=e[h*n+g]*e[h*n+l];for(l=0;l<a;l++)x[g*a+l]+=e[h*n+g]*r[h*a+l]}for(g=0;g<n;g++)for(l=0;l<g;l++)p[g*n+l]=p[l*n+g];let S=Ka(p,v,n);if(S)for(g=0;g<n;g++)for(l=0;l<a;l++)for(i[g*a+l]=0,h=0;h<n;h++)i[g*a+l]+=v[g*n+h]*x[h*a+l];if(y){for(l=0;l<a;l++)if(o[l])for(g=0;g<n;g++)i[g*a+l]=f[g*a]}return y?u&&S:S}function ST(t,e=[0,.5,1]){switch(t.length){case 3:return e[0]=parseInt(t[0],16)*17/255,e[1]=parseInt(t[1],16)*17/255,e[2]=parseInt(t[2],16)*17/255,e;case 4:return e[0]=parseInt(t[1],16)*17/255,e[1]=parseInt(t[2],16)*17/255,e[2]=parseInt(t[3],16)*17/255,e;case 6:return e[0]=parseInt(t.substr(0,2),16)/255,e[1]=parseInt(t.substr(2,2),16)/255,e[2]=parseInt(t.substr(4,2),16)/255,e;case 7:return e[0]=parseInt(t.substr(1,2),16)/255,e[1]=parseInt(t.substr(3,2),16)/255,e[2]=parseInt(t.substr(5,2),16)/255,e;case 9:return e[0]=parseInt(t.substr(1,2),16)/255,e[1]=parseInt(t.substr(3,2),16)/255,e[2]=parseInt(t.substr(5,2),16)/255,e[3]=parseInt(t.substr(7,2),16)/255,e;default:return e}}function gr(t,e){let n,r,[a,i,s]=t,o=1/3,c=1/6,f=2/3,u=a,g=a;i>u?u=i:i<g&&(g=i),s>u?u=s:s<g&&(g=s);let l=u;l>0?r=(u-g)/u:r=0,r>0?(a===u?n=c*(i-s)/(u-g):i===u?n=o+c*(s-a)/(u-g):n=f+c*(a-i)/(u-g),n<0&&(n+=1)):n=0,e[0]=n,e[1]=r,e[2]=l}function Kt(t,e){let[n,r,a]=t,i=1/3,s=1/6,o=2/3,c=5/6,f,u,g;n>s&&n<=i?(u=1,f=(i-n)/s,g=0):n>i&&n<=.5?(u=1,g=(n-i)/s,f=0):n>.5&&n<=o?(g=1,u=(o-n)/s,f=0):n>o&&n<=c?(g=1,f=(n-o)/s,u=0):n>c&&n<=1?(f=1,g=(1-n)/s,u=0):(f=1,u=n/s,g=0),f=r*f+(1-r),u=r*u+(1-r),g=r*g+(1-r),f*=a,u*=a,g*=a,e[0]=f,e[1]=u,e[2]=g}function Zf(t,e){let[n,r,a]=t,i=(n+16)/116,s=r/500+i,o=i-a/200;i**3>.008856?i**=3:i=(i-16/116)/7.787,s**3>.008856?s**=3:s=(s-16/116)/7.787,o**3>.008856?o**=3:o=(o-16/116)/7.787;let c=.9505,f=1,u=1.089;e[0]=c*s,e[1]=f*i,e[2]=u*o}function Qf(t,e){let[n,r,a]=t,i=.9505,s=1,o=1.089,c=n/i,f=r/s,u=a/o;c>.008856?c**=1/3:c=7.787*c+16/116,f>.008856?f**=1/3:f=7.787*f+16/116,u>.008856?u**=1/3:u=7.787*u+16/116,e[0]=116*f-16,e[1]=500*(c-f),e[2]=200*(f-u)}function Jf(t,e){let[n,r,a]=t,i=n*3.2406+r*-1.5372+a*-.4986,s=n*-.9689+r*1.8758+a*.0415,o=n*.0557+r*-.204+a*1.057;i>.0031308?i=1.055*i**(1/2.4)-.055:i*=12.92,s>.0031308?s=1.055*s**(1/2.4)-.055:s*=12.92,o>.0031308?o=1.055*o**(1/2.4)-.055:o*=12.92;let c=i;c<s&&(c=s),c<o&&(c=o),c>1&&(i/=c,s/=c,o/=c),i<0&&(i=0),s<0&&(s=0),o<0&&(o=0),e[0]=i,e[1]=s,e[2]=o}function eu(t,e){let[n,r,a]=t;n>.04045?n=((n+.055)/1.055)**2.4:n/=12.92,r>.04045?r=((r+.055)/1.055)**2.4:r/=12.92,a>.04045?a=((a+.055)/1.055)**2.4:a/=12.92,e[0]=n*.4124+r*.3576+a*.1805,e[1]=n*.2126+r*.7152+a*.0722,e[2]=n*.0193+r*.1192+a*.9505}function fn(t,e){let n=[0,0,0];eu(t,n),Qf(n,e)}function qr(t,e){let n=[0,0,0];Zf(t,n),Jf(n,e)}function Zr(t){return t[0]=1,t[1]=-1,t[2]=1,t[3]=-1,t[4]=1,t[5]=-1,t}function Qr(t){return!(t[1]-t[0]<0)}function CT(t,e,n){return n[0]=Math.min(t[0],e[0]),n[1]=Math.max(t[0],e[0]),n[2]=Math.min(t[1],e[1]),n[3]=Math.max(t[1],e[1]),n[4]=Math.min(t[2],e[2]),n[5]=Math.max(t[2],e[2]),n}function It(t,e,n){return t<e?e:t>n?n:t}function Xa(t,e,n,r=[0,0,0]){return r[0]=It(t[0],e[0],n[0]),r[1]=It(t[1],e[1],n[1]),r[2]=It(t[2],e[2],n[2]),r}function wT(t,e){let n=0;return e[0]!==e[1]&&(t<e[0]?n=e[0]:t>e[1]?n=e[1]:n=t,n=(n-e[0])/(e[1]-e[0])),n}var OT=Kr("GetScalarTypeFittingRange"),RT=Kr("GetAdjustedScalarRange");function MT(t,e){if(!t||!e)return 0;for(let n=0;n<6;n+=2)if(t[n]<e[n]||t[n]>e[n+1]||t[n+1]<e[n]||t[n+1]>e[n+1])return 0;return 1}function ET(t,e,n){if(!t||!e)return 0;for(let r=0;r<6;r+=2)if(t[r]+n[r/2]<e[r]||t[r]-n[r/2]>e[r+1]||t[r+1]+n[r/2]<e[r]||t[r+1]-n[r/2]>e[r+1])return 0;return 1}function DT(t,e,n){if(!t||!e||!n)return 0;for(let r=0;r<3;r++)if(t[r]+n[r]<e[2*r]||t[r]-n[r]>e[2*r+1])return 0;return 1}function VT(t,e,n,r){let a=we(3),i=we(3),s=we(3),o=we(3),c=we(3),f=we(3);for(let d=0;d<3;++d)a[d]=t[d]-e[d],i[d]=e[d]-n[d],s[d]=n[d]-t[d],o[d]=-a[d],c[d]=-i[d],f[d]=-s[d];let u=ut(o),g=ut(c),l=ut(s),h=we(3);Ue(a,i,h);let y=ut(h),p=u*g*l/(2*y),v=2*y*y,x=g*g*q(a,f)/v,S=l*l*q(o,i)/v,T=u*u*q(s,c)/v;for(let d=0;d<3;++d)r[d]=x*t[d]+S*e[d]+T*n[d];return p}var LT=1/0,_T=-1/0,zs=t=>!Number.isFinite(t),{isFinite:FT,isNaN:Bs}=Number,kn=Bs;function Ws(){return[].concat([Number.MAX_VALUE,-Number.MAX_VALUE,Number.MAX_VALUE,-Number.MAX_VALUE,Number.MAX_VALUE,-Number.MAX_VALUE])}function NT(t){let e=-1,n=-1;for(let r=0;r<t.length;r++){let a=Math.abs(t[r]);a>e&&(n=r,e=a)}return n}function BT(t){let e=1/0,n=-1;for(let r=0;r<t.length;r++){let a=Math.abs(t[r]);a<e&&(n=r,e=a)}return n}function GT(t,e=3){let n=new Array(e),r=new Array(e);for(let i=0;i<e;++i)n[i]=i,r[i]=i;for(let i=e-1;i>0;i--){let s=-1/0,o=0,c=0;for(let f=0;f<=i;++f){let u=n[f];for(let g=0;g<=i;++g){let l=r[g],h=Math.abs(t[u+e*l]);h>s&&(s=h,o=f,c=g)}}[n[i],n[o]]=[n[o],n[i]],[r[i],r[c]]=[r[c],r[i]]}let a=new Array(e*e).fill(0);for(let i=0;i<e;++i){let s=n[i]+e*r[i];a[s]=t[s]<0?-1:1}return a}function tu(t){let e=Math.floor(t*255);return e>15?e.toString(16):`0${e.toString(16)}`}function UT(t,e="#"){return`${e}${t.map(tu).join("")}`}function Pa(t){return Math.round(t*255)}function kT(t){return t.length===3?`rgb(${t.map(Pa).join(", ")})`:`rgba(${Pa(t[0]||0)}, ${Pa(t[1]||0)}, ${Pa(t[2]||0)}, ${t[3]||0})`}var me={Pi:Gd,ldexp:Ud,radiansFromDegrees:Me,degreesFromRadians:jt,round:lr,floor:Xr,ceil:kd,ceilLog2:Hd,min:bd,max:zd,arrayMin:Wd,arrayMax:Ad,arrayRange:Pd,isPowerOfTwo:jd,nearestPowerOfTwo:Rt,factorial:Id,binomial:$d,beginCombination:Kd,nextCombination:Xd,randomSeed:Yd,getSeed:qd,random:Zd,gaussian:Qd,add:$t,subtract:Le,multiplyScalar:Wf,multiplyScalar2D:Af,multiplyAccumulate:Ia,multiplyAccumulate2D:Jd,dot:q,outer:eT,cross:Ue,norm:ut,normalize:$e,perpendiculars:tT,projectVector:nT,projectVector2D:rT,distance2BetweenPoints:ze,angleBetweenVectors:aT,gaussianAmplitude:iT,gaussianWeight:sT,dot2D:_s,outer2D:oT,norm2D:Hf,normalize2D:Gs,determinant2x2:Re,LUFactor3x3:cT,LUSolve3x3:fT,linearSolve3x3:uT,multiply3x3_vect3:lT,multiply3x3_mat3:Fs,multiplyMatrix:gT,transpose3x3:ur,invert3x3:pT,identity3x3:jf,identity:$f,isIdentity:hT,isIdentity3x3:vT,determinant3x3:ja,quaternionToMatrix3x3:Kf,areEquals:If,areMatricesEqual:cn,roundNumber:Ha,roundVector:$a,matrix3x3ToQuaternion:Xf,multiplyQuaternion:dT,orthogonalize3x3:Yf,diagonalize3x3:qf,singularValueDecomposition3x3:TT,solveLinearSystem:bs,invertMatrix:Ka,luFactorLinearSystem:Us,luSolveLinearSystem:ks,estimateMatrixCondition:xT,jacobi:yT,jacobiN:Yr,solveHomogeneousLeastSquares:Ns,solveLeastSquares:mT,hex2float:ST,rgb2hsv:gr,hsv2rgb:Kt,lab2xyz:Zf,xyz2lab:Qf,xyz2rgb:Jf,rgb2xyz:eu,rgb2lab:fn,lab2rgb:qr,uninitializeBounds:Zr,areBoundsInitialized:Qr,computeBoundsFromPoints:CT,clampValue:It,clampVector:Xa,clampAndNormalizeValue:wT,getScalarTypeFittingRange:OT,getAdjustedScalarRange:RT,extentIsWithinOtherExtent:MT,boundsIsWithinOtherBounds:ET,pointIsWithinBounds:DT,solve3PointCircle:VT,inf:LT,negInf:_T,isInf:zs,isNan:Bs,isNaN:Bs,isFinite:FT,createUninitializedBounds:Ws,getMajorAxisIndex:NT,getMinorAxisIndex:BT,getSparseOrthogonalMatrix:GT,floatToHex2:tu,floatRGB2HexCode:UT,float2CssRGBA:kT};var bT={Int8Array:1,Uint8Array:1,Uint8ClampedArray:1,Int16Array:2,Uint16Array:2,Int32Array:4,Uint32Array:4,Float32Array:4,Float64Array:8},ee={VOID:"",CHAR:"Int8Array",SIGNED_CHAR:"Int8Array",UNSIGNED_CHAR:"Uint8Array",UNSIGNED_CHAR_CLAMPED:"Uint8ClampedArray",SHORT:"Int16Array",UNSIGNED_SHORT:"Uint16Array",INT:"Int32Array",UNSIGNED_INT:"Uint32Array",FLOAT:"Float32Array",DOUBLE:"Float64Array"},zT=ee.FLOAT,As={DefaultDataType:zT,DataTypeByteSize:bT,VtkDataTypes:ee};var{vtkWarningMacro:WT}=O,{DefaultDataType:AT}=As;function Ps(t,e,n){let r=t.length,a=Number.MAX_VALUE,i=-Number.MAX_VALUE,s,o;for(o=e;o<r;o+=n)if(!Number.isNaN(t[o])){a=t[o],i=a;break}for(;o<r;o+=n)s=t[o],s<a?a=s:s>i&&(i=s);return{min:a,max:i}}function PT(){let t=Number.MAX_VALUE,e=-Number.MAX_VALUE,n=0,r=0;return{add(a){t>a&&(t=a),e<a&&(e=a),n++,r+=a},get(){return{min:t,max:e,count:n,sum:r,mean:r/n}},getRange(){return{min:t,max:e}}}}function ru(t,e=0,n=1){if(e<0&&n>1){let r=t.length/n,a=new Float64Array(r);for(let i=0,s=0;i<r;++i){for(let o=s+n;s<o;++s)a[i]+=t[s]*t[s];a[i]**=.5}return Ps(a,0,1)}return Ps(t,e<0?0:e,n)}function nu(t,e=0){let n=t||[];for(;n.length<=e;)n.push(null);return n}function Hs(t){return Object.prototype.toString.call(t).slice(8,-1)}function HT(t){let e=t.getNumberOfComponents(),n=0,r=new Array(e);for(let a=0;a<t.getNumberOfTuples();++a){t.getTuple(a,r);let i=me.norm(r,e);i>n&&(n=i)}return n}var IT={computeRange:ru,createRangeHelper:PT,fastComputeRange:Ps,getDataType:Hs,getMaxNorm:HT};function jT(t,e){e.classHierarchy.push("vtkDataArray");function n(r){let a=t.getNumberOfComponents(),i=e.values.length/(a>0?a:1);if(r!==i&&r>i){let s=e.values;e.values=O.newTypedArray(e.dataType,(r+i)*a),e.values.set(s)}}t.dataChange=()=>{e.ranges=null,t.modified()},t.allocate=r=>{!Number.isInteger(r)||r<0||n(t.getNumberOfTuples()+r)},t.resize=r=>{if(!Number.isInteger(r)||r<0)return!1;n(r);let a=r*t.getNumberOfComponents();return e.size!==a?(e.size=a,t.dataChange(),!0):!1},t.initialize=()=>(t.resize(0),t),t.getElementComponentSize=()=>e.values.BYTES_PER_ELEMENT,t.getComponent=(r,a=0)=>e.values[r*e.numberOfComponents+a],t.setComponent=(r,a,i)=>{let s=r*e.numberOfComponents+a;Object.is(i,e.values[s])||(e.values[s]=i,t.dataChange())},t.getValue=r=>e.values[r],t.setValue=(r,a)=>{Object.is(a,e.values[r])||(e.values[r]=a,t.dataChange())},t.getData=()=>e.size===e.values.length?e.values:e.values.subarray(0,e.size),t.getRange=(r=-1)=>{let a=r;a<0&&(a=e.numberOfComponents===1?0:e.numberOfComponents);let i=null;return e.ranges||(e.ranges=nu(e.ranges,e.numberOfComponents)),i=e.ranges[a],i?(e.rangeTuple[0]=i.min,e.rangeTuple[1]=i.max,e.rangeTuple):(i=ru(t.getData(),r,e.numberOfComponents),e.ranges[a]=i,e.rangeTuple[0]=i.min,e.rangeTuple[1]=i.max,e.rangeTuple)},t.setRange=(r,a)=>{e.ranges||(e.ranges=nu(e.ranges,e.numberOfComponents));let i={min:r.min,max:r.max};return e.ranges[a]=i,e.rangeTuple[0]=i.min,e.rangeTuple[1]=i.max,e.rangeTuple},t.getRanges=(r=!0)=>{if(!r)return structuredClone(e.ranges);let a=[];for(let i=0;i<e.numberOfComponents;i++){let[s,o]=t.getRange(i),c={min:s,max:o};a.push(c)}if(e.numberOfComponents>1){let[i,s]=t.getRange(-1),o={min:i,max:s};a.push(o)}return a},t.setTuple=(r,a)=>{let i=r*e.numberOfComponents,s=!1;for(let o=0;o<e.numberOfComponents;o++){let c=i+o,f=e.values[c];e.values[c]=a[o],Object.is(e.values[c],f)||(s=!0)}return s&&t.dataChange(),s},t.setTuples=(r,a)=>{let i=r*e.numberOfComponents,s=Math.min(a.length,e.size-i),o=!1;for(let c=0;c<s;){let f=e.values[i];e.values[i]=a[c],Object.is(e.values[i],f)||(o=!0),i++,c++}return o&&t.dataChange(),o},t.insertTuple=(r,a)=>{if(!Number.isInteger(r)||r<0)throw new RangeError("idx must be a nonnegative integer");let i=e.size<=r*e.numberOfComponents;i&&(n(r+1),e.size=(r+1)*e.numberOfComponents);let s=t.setTuple(r,a);return i&&!s&&t.dataChange(),r},t.insertTuples=(r,a)=>{if(!Number.isInteger(r)||r<0)throw new RangeError("idx must be a nonnegative integer");if(a.length%e.numberOfComponents!==0)throw new RangeError("tuples.length must be a multiple of numberOfComponents");let i=r+a.length/e.numberOfComponents,s=e.size<i*e.numberOfComponents;s&&(n(i),e.size=i*e.numberOfComponents);let o=t.setTuples(r,a);return s&&!o&&t.dataChange(),i},t.insertNextTuple=r=>{let a=e.size/e.numberOfComponents;return t.insertTuple(a,r)},t.insertNextTuples=r=>{let a=e.size/e.numberOfComponents;return t.insertTuples(a,r)},t.findTuple=(r,a=fr)=>{for(let i=0;i<e.size;i+=e.numberOfComponents)if(Math.abs(r[0]-e.values[i])<=a){let s=!0;for(let o=1;o<e.numberOfComponents;++o)if(Math.abs(r[o]-e.values[i+o])>a){s=!1;break}if(s)return i/e.numberOfComponents}return-1},t.getTuple=(r,a=[])=>{let i=e.numberOfComponents||1,s=r*i;switch(i){case 4:a[3]=e.values[s+3];case 3:a[2]=e.values[s+2];case 2:a[1]=e.values[s+1];case 1:a[0]=e.values[s];break;default:for(let o=i-1;o>=0;--o)a[o]=e.values[s+o]}return a},t.getTuples=(r,a)=>{let i=(r??0)*e.numberOfComponents,s=(a??t.getNumberOfTuples())*e.numberOfComponents,o=t.getData().subarray(i,s);return o.length>0?o:null},t.getTupleLocation=(r=1)=>r*e.numberOfComponents,t.getNumberOfComponents=()=>e.numberOfComponents,t.getNumberOfValues=()=>e.size,t.getNumberOfTuples=()=>e.size/e.numberOfComponents,t.getDataType=()=>e.dataType,t.setNumberOfComponents=r=>!Number.isInteger(r)||r<=0||e.size%r!==0?(WT("numberOfComponents must be a positive integer that divides the array size"),!1):e.numberOfComponents!==r?(e.numberOfComponents=r,t.dataChange(),!0):!1,t.newClone=()=>iu({empty:!0,name:e.name,dataType:e.dataType,numberOfComponents:e.numberOfComponents,ranges:structuredClone(e.ranges)}),t.getName=()=>(e.name||(t.modified(),e.name=`vtkDataArray${t.getMTime()}`),e.name),t.setData=(r,a)=>{if(!ArrayBuffer.isView(r)||r instanceof DataView)throw new TypeError("Array must be a TypedArray");let i=a??e.numberOfComponents;e.values=r,e.size=r.length,e.dataType=Hs(r),e.numberOfComponents=1,Number.isInteger(i)&&i>0&&e.size%i===0&&(e.numberOfComponents=i),t.dataChange()},t.getState=({preserveTypedArrays:r=!1}={})=>{if(e.deleted)return null;let a={...e,vtkClass:t.getClassName()};r||(a.values=Array.from(a.values)),delete a.buffer,Object.keys(a).forEach(s=>{a[s]||delete a[s]});let i={};return Object.keys(a).sort().forEach(s=>{i[s]=a[s]}),i.mtime&&delete i.mtime,i},t.deepCopy=r=>{let a=t.getDataType(),i=e.values;t.shallowCopy(r);let s=structuredClone(r.getRanges(!1));i?.length>=r.getNumberOfValues()&&a===r.getDataType()?(i.set(r.getData()),e.values=i):e.values=r.getData().slice(),e.ranges=s,e.rangeTuple=[0,0],t.modified()},t.interpolateTuple=(r,a,i,s,o,c)=>{let f=e.numberOfComponents||1;if(f!==a.getNumberOfComponents()||f!==s.getNumberOfComponents())throw new RangeError("numberOfComponents must match");let u=a.getTuple(i),g=s.getTuple(o),l=[];switch(l.length=f,f){case 4:l[3]=u[3]+(g[3]-u[3])*c;case 3:l[2]=u[2]+(g[2]-u[2])*c;case 2:l[1]=u[1]+(g[1]-u[1])*c;case 1:l[0]=u[0]+(g[0]-u[0])*c;break;default:for(let h=0;h<f;h++)l[h]=u[h]+(g[h]-u[h])*c}return t.insertTuple(r,l)}}var $T={name:"",numberOfComponents:1,dataType:AT,rangeTuple:[0,0]};function au(t,e,n={}){if(Object.assign(e,$T,n),Array.isArray(n.values)&&n.dataType===void 0&&console.warn("vtkDataArray.newInstance: no dataType provided, converting to Float32Array"),!e.empty&&!e.values&&!e.size)throw new TypeError("Cannot create vtkDataArray object without: size > 0, values");if(e.values?Array.isArray(e.values)&&(e.values=O.newTypedArrayFrom(e.dataType,e.values)):e.values=O.newTypedArray(e.dataType,e.size),e.values&&(e.size=e.size??e.values.length,e.dataType=Hs(e.values)),O.obj(t,e),O.set(t,e,["name"]),!Number.isInteger(e.numberOfComponents)||e.numberOfComponents<=0||e.size%e.numberOfComponents!==0)throw new RangeError("numberOfComponents must be a positive integer that divides model.size");jT(t,e)}var iu=O.newInstance(au,"vtkDataArray"),Y={newInstance:iu,extend:au,...IT,...As};var su=new Float32Array(1),KT=new Int32Array(su.buffer);function XT(t){su[0]=t;let e=KT[0],n=e>>16&32768,r=e>>12&2047,a=e>>23&255;return a<103?n:a>142?(n|=31744,n|=(a===255?0:1)&&e&8388607,n):a<113?(r|=2048,n|=(r>>114-a)+(r>>113-a&1),n):(n|=a-112<<10|r>>1,n+=r&1,n)}function YT(t){let e=(t&32768)>>15,n=(t&31744)>>10,r=t&1023;return n===0?(e?-1:1)*2**-14*(r/2**10):n===31?r?NaN:(e?-1:1)*(1/0):(e?-1:1)*2**(n-15)*(1+r/2**10)}var Xt={fromHalf:YT,toHalf:XT};var bn={CLAMP_TO_EDGE:0,REPEAT:1,MIRRORED_REPEAT:2},j={NEAREST:0,LINEAR:1,NEAREST_MIPMAP_NEAREST:2,NEAREST_MIPMAP_LINEAR:3,LINEAR_MIPMAP_NEAREST:4,LINEAR_MIPMAP_LINEAR:5},Is={Wrap:bn,Filter:j};var{vtkErrorMacro:qT}=O,ZT=["Build","Render"];function QT(t,e){e.classHierarchy.push("vtkViewNode");function n(a,i){let{children:s}=e;if(a.end===void 0){a.start=s.lastIndexOf(i),a.end=a.start+1;return}if(s[a.end]===i){a.end++;return}let o=s.indexOf(i,a.end+1);if(o<0&&(o=s.indexOf(i)),!(o>=a.start&&o<a.end)){if(a.end>=s.length){s.splice(o,1),s.push(i),a.start--;return}s[o]=s[a.end],s[a.end]=i,a.end++}}t.build=a=>{},t.render=a=>{},t.traverse=a=>{let i=t[a.getTraverseOperation()];if(i){i(a);return}t.apply(a,!0);for(let s=0;s<e.children.length;s++)e.children[s].traverse(a);t.apply(a,!1)},t.apply=(a,i)=>{let s=t[a.getOperation()];s&&s(i,a)},t.getViewNodeFor=(a,i=null)=>{if(i&&i.renderable===a)return i;if(e.renderable===a)return t;for(let s=0;s<e.children.length;++s){let o=e.children[s].getViewNodeFor(a);if(o)return o}},t.getFirstAncestorOfType=a=>e._parent?e._parent.isA(a)?e._parent:e._parent.getFirstAncestorOfType(a):null,t.getLastAncestorOfType=a=>{if(!e._parent)return null;let i=e._parent.getLastAncestorOfType(a);return i||(e._parent.isA(a)?e._parent:null)},t.addMissingNode=a=>{if(!a)return;let i=e._renderableChildMap.get(a);if(i!==void 0)return i.setVisited(!0),i;let s=t.createViewNode(a);if(s)return s.setParent(t),s.setVisited(!0),e._renderableChildMap.set(a,s),e.children.push(s),s},t.addMissingNodes=(a,i=!1)=>{if(!a||!a.length)return;let s={};for(let o=0;o<a.length;++o){let c=a[o],f=t.addMissingNode(c);i&&f!==void 0&&n(s,f)}},t.addMissingChildren=a=>{if(!(!a||!a.length))for(let i=0;i<a.length;++i){let s=a[i];if(e.children.indexOf(s)===-1){s.setParent(t),e.children.push(s);let o=s.getRenderable();o&&e._renderableChildMap.set(o,s)}s.setVisited(!0)}},t.removeNode=a=>{let i=e.children.findIndex(o=>o===a);if(i<0)return!1;let s=a.getRenderable();return s&&e._renderableChildMap.delete(s),a.delete(),e.children.splice(i,1),!0},t.prepareNodes=()=>{for(let a=0;a<e.children.length;++a)e.children[a].setVisited(!1)},t.setVisited=a=>{e.visited=a},t.removeUnusedNodes=()=>{let a=0;for(let i=0;i<e.children.length;++i){let s=e.children[i];if(s.getVisited())e.children[a++]=s,s.setVisited(!1);else{let o=s.getRenderable();o&&e._renderableChildMap.delete(o),s.delete()}}e.children.length=a},t.createViewNode=a=>{if(!e.myFactory)return qT("Cannot create view nodes without my own factory"),null;let i=e.myFactory.createNode(a);return i&&i.setRenderable(a),i};let r=t.delete;t.delete=()=>{for(let a=0;a<e.children.length;a++)e.children[a].delete();r()}}var JT={renderable:null,myFactory:null,children:[],visited:!1};function ou(t,e,n={}){Object.assign(e,JT,n),O.obj(t,e),O.event(t,e,"event"),e._renderableChildMap=new Map,O.get(t,e,["visited"]),O.setGet(t,e,["_parent","renderable","myFactory"]),O.getArray(t,e,["children"]),O.moveToProtected(t,e,["parent"]),QT(t,e)}var ue={newInstance:O.newInstance(ou,"vtkViewNode"),extend:ou,PASS_TYPES:ZT};var{vtkWarningMacro:ex}=O;function tx(t){let e=[],n=0,r=t.getClassName(n++);for(;r;)e.push(r),r=t.getClassName(n++);return e}function nx(t,e){let n=e.join(" \u2192 ");return[`No ${t} implementation found for ${e[0]}.`,`Class hierarchy: ${n}.`,`A rendering Profile is likely missing for ${e[0]}.`,"Try importing '@kitware/vtk.js/Rendering/Profiles/All' or 'vtk.js/Sources/Rendering/Profiles/All',","or import the specific rendering profile needed by this renderable if known.","See https://kitware.github.io/vtk-js/docs/concepts_profile.html for details."].join(`
`)}function rx(t){return t.includes("vtkAbstractWidget")||t.includes("vtkWidgetRepresentation")}function ax(t,e){e.overrides||(e.overrides={}),e.classHierarchy.push("vtkViewNodeFactory"),t.createNode=n=>{if(n.isDeleted())return null;let r=tx(n),a=0,i=r[a++],s=!1,o=Object.keys(e.overrides);for(;i&&!s;)o.indexOf(i)!==-1?s=!0:i=n.getClassName(a++);if(!s)return rx(r)||ex(nx(t.getClassName(),r)),null;let c=e.overrides[i]();return c.setMyFactory(t),c}}var ix={};function cu(t,e,n={}){Object.assign(e,ix,n),O.obj(t,e),ax(t,e)}var sx=O.newInstance(cu,"vtkViewNodeFactory"),Ya={newInstance:sx,extend:cu};var fu=Object.create(null);function le(t,e){fu[t]=e}function ox(t,e){e.classHierarchy.push("vtkOpenGLViewNodeFactory")}var cx={};function uu(t,e,n={}){Object.assign(e,cx,n),e.overrides=fu,Ya.extend(t,e,n),ox(t,e)}var fx=O.newInstance(uu,"vtkOpenGLViewNodeFactory"),lu={newInstance:fx,extend:uu};function ux(){try{let r=new Int16Array([0,32767]),a=[1,1],i=document.createElement("canvas");i.width=4,i.height=4;let s=i.getContext("webgl2");if(!s)return!1;let o=s.getExtension("EXT_texture_norm16");if(!o)return!1;let c=`#version 300 es
    void main() {
      gl_PointSize = ${4 .toFixed(1)};
      gl_Position = vec4(0, 0, 0, 1);
    }
  `,f=`#version 300 es
    precision highp float;
    precision highp int;
    precision highp sampler2D;

    uniform sampler2D u_image;

    out vec4 color;

    void main() {
        vec4 intColor = texture(u_image, gl_PointCoord.xy);
        color = vec4(vec3(intColor.rrr), 1);
    }
    `,u=s.createShader(s.VERTEX_SHADER);if(s.shaderSource(u,c),s.compileShader(u),!s.getShaderParameter(u,s.COMPILE_STATUS))return!1;let g=s.createShader(s.FRAGMENT_SHADER);if(s.shaderSource(g,f),s.compileShader(g),!s.getShaderParameter(g,s.COMPILE_STATUS))return!1;let l=s.createProgram();if(s.attachShader(l,u),s.attachShader(l,g),s.linkProgram(l),!s.getProgramParameter(l,s.LINK_STATUS))return!1;let h=s.createTexture();s.bindTexture(s.TEXTURE_2D,h),s.texImage2D(s.TEXTURE_2D,0,o.R16_SNORM_EXT,2,1,0,s.RED,s.SHORT,r),s.texParameteri(s.TEXTURE_2D,s.TEXTURE_MAG_FILTER,s.LINEAR),s.texParameteri(s.TEXTURE_2D,s.TEXTURE_MIN_FILTER,s.LINEAR),s.useProgram(l),s.drawArrays(s.POINTS,0,1);let y=new Uint8Array(4);s.readPixels(a[0],a[1],1,1,s.RGBA,s.UNSIGNED_BYTE,y);let[p,v,x]=y,S=s.getExtension("WEBGL_lose_context");return S&&S.loseContext(),p===v&&v===x&&p!==0}catch{return!1}}var js;function gu(){return js===void 0&&(js=ux()),js}var hu=Hr(La(),1),{Wrap:Yt,Filter:ke}=Is,{VtkDataTypes:xe}=Y,{vtkDebugMacro:$s,vtkErrorMacro:pr,vtkWarningMacro:pu,requiredParam:ge}=Ce,{toHalf:lx}=Xt;function gx(t,e){e.classHierarchy.push("vtkOpenGLTexture");function n(){return{internalFormat:e.internalFormat,format:e.format,openGLDataType:e.openGLDataType,width:e.width,height:e.height}}t.render=(h=null)=>{if(h?e._openGLRenderWindow=h:(e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e._openGLRenderWindow=e._openGLRenderer.getLastAncestorOfType("vtkOpenGLRenderWindow")),e.context=e._openGLRenderWindow.getContext(),e.renderable.getInterpolate()?(e.generateMipmap?t.setMinificationFilter(ke.LINEAR_MIPMAP_LINEAR):t.setMinificationFilter(ke.LINEAR),t.setMagnificationFilter(ke.LINEAR)):(t.setMinificationFilter(ke.NEAREST),t.setMagnificationFilter(ke.NEAREST)),e.renderable.getRepeat()&&(t.setWrapR(Yt.REPEAT),t.setWrapS(Yt.REPEAT),t.setWrapT(Yt.REPEAT)),e.renderable.getInputData()&&e.renderable.setImage(null),!e.handle||e.renderable.getMTime()>e.textureBuildTime.getMTime()){if(e.renderable.getImageBitmap()!==null&&(e.renderable.getInterpolate()&&(e.generateMipmap=!0,t.setMinificationFilter(ke.LINEAR_MIPMAP_LINEAR)),e.renderable.getImageBitmap()&&e.renderable.getImageLoaded()&&(t.create2DFromImageBitmap(e.renderable.getImageBitmap()),t.activate(),t.sendParameters(),e.textureBuildTime.modified())),e.renderable.getImage()!==null&&(e.renderable.getInterpolate()&&(e.generateMipmap=!0,t.setMinificationFilter(ke.LINEAR_MIPMAP_LINEAR)),e.renderable.getImage()&&e.renderable.getImageLoaded()&&(t.create2DFromImage(e.renderable.getImage()),t.activate(),t.sendParameters(),e.textureBuildTime.modified())),e.renderable.getCanvas()!==null){e.renderable.getInterpolate()&&(e.generateMipmap=!0,t.setMinificationFilter(ke.LINEAR_MIPMAP_LINEAR));let p=e.renderable.getCanvas();t.create2DFromRaw({width:p.width,height:p.height,numComps:4,dataType:xe.UNSIGNED_CHAR,data:p,flip:!0}),t.activate(),t.sendParameters(),e.textureBuildTime.modified()}if(e.renderable.getJsImageData()!==null){let p=e.renderable.getJsImageData();e.renderable.getInterpolate()&&(e.generateMipmap=!0,t.setMinificationFilter(ke.LINEAR_MIPMAP_LINEAR)),t.create2DFromRaw({width:p.width,height:p.height,numComps:4,dataType:xe.UNSIGNED_CHAR,data:p.data,flip:!0}),t.activate(),t.sendParameters(),e.textureBuildTime.modified()}let y=e.renderable.getInputData(0);if(y&&y.getPointData().getScalars()){let p=y.getExtent(),v=y.getPointData().getScalars(),x=[];for(let S=0;S<e.renderable.getNumberOfInputPorts();++S){let T=e.renderable.getInputData(S),d=T?T.getPointData().getScalars().getData():null;d&&x.push(d)}e.renderable.getInterpolate()&&v.getNumberOfComponents()===4&&(e.generateMipmap=!0,t.setMinificationFilter(ke.LINEAR_MIPMAP_LINEAR)),x.length%6===0?t.createCubeFromRaw({width:p[1]-p[0]+1,height:p[3]-p[2]+1,numComps:v.getNumberOfComponents(),dataType:v.getDataType(),data:x}):t.create2DFromRaw({width:p[1]-p[0]+1,height:p[3]-p[2]+1,numComps:v.getNumberOfComponents(),dataType:v.getDataType(),data:v.getData()}),t.activate(),t.sendParameters(),e.textureBuildTime.modified()}}e.handle&&t.activate()};let r=()=>{if(!((e.minificationFilter===ke.LINEAR||e.magnificationFilter===ke.LINEAR)&&!gu()))return e.oglNorm16Ext};t.destroyTexture=()=>{t.deactivate(),e.context&&e.handle&&e.context.deleteTexture(e.handle),e._prevTexParams=null,e.handle=0,e.numberOfDimensions=0,e.target=0,e.components=0,e.width=0,e.height=0,e.depth=0,t.resetFormatAndType()},t.createTexture=()=>{e.handle||(e.handle=e.context.createTexture(),e.target&&(e.context.bindTexture(e.target,e.handle),e.context.texParameteri(e.target,e.context.TEXTURE_MIN_FILTER,t.getOpenGLFilterMode(e.minificationFilter)),e.context.texParameteri(e.target,e.context.TEXTURE_MAG_FILTER,t.getOpenGLFilterMode(e.magnificationFilter)),e.context.texParameteri(e.target,e.context.TEXTURE_WRAP_S,t.getOpenGLWrapMode(e.wrapS)),e.context.texParameteri(e.target,e.context.TEXTURE_WRAP_T,t.getOpenGLWrapMode(e.wrapT)),e.context.texParameteri(e.target,e.context.TEXTURE_WRAP_R,t.getOpenGLWrapMode(e.wrapR)),e.context.bindTexture(e.target,null)))},t.getTextureUnit=()=>e._openGLRenderWindow?e._openGLRenderWindow.getTextureUnitForTexture(t):-1,t.activate=()=>{e._openGLRenderWindow.activateTexture(t),t.bind()},t.deactivate=()=>{e._openGLRenderWindow&&e._openGLRenderWindow.deactivateTexture(t)},t.releaseGraphicsResources=h=>{h&&e.handle&&(h.activateTexture(t),h.deactivateTexture(t),e.context.deleteTexture(e.handle),e._prevTexParams=null,e.handle=0,e.numberOfDimensions=0,e.target=0,e.internalFormat=0,e.format=0,e.openGLDataType=0,e.components=0,e.width=0,e.height=0,e.depth=0,e.allocatedGPUMemoryInBytes=0),e.shaderProgram&&(e.shaderProgram.releaseGraphicsResources(h),e.shaderProgram=null)},t.bind=()=>{e.context.bindTexture(e.target,e.handle),e.autoParameters&&t.getMTime()>e.sendParametersTime.getMTime()&&t.sendParameters()},t.isBound=()=>{let h=!1;if(e.context&&e.handle){let y=0;e.target===e.context.TEXTURE_2D?y=e.context.TEXTURE_BINDING_2D:pu("impossible case"),h=e.context.getIntegerv(y)===e.handle}return h},t.sendParameters=()=>{e.context.texParameteri(e.target,e.context.TEXTURE_WRAP_S,t.getOpenGLWrapMode(e.wrapS)),e.context.texParameteri(e.target,e.context.TEXTURE_WRAP_T,t.getOpenGLWrapMode(e.wrapT)),e.context.texParameteri(e.target,e.context.TEXTURE_WRAP_R,t.getOpenGLWrapMode(e.wrapR)),e.context.texParameteri(e.target,e.context.TEXTURE_MIN_FILTER,t.getOpenGLFilterMode(e.minificationFilter)),e.context.texParameteri(e.target,e.context.TEXTURE_MAG_FILTER,t.getOpenGLFilterMode(e.magnificationFilter)),e.context.texParameteri(e.target,e.context.TEXTURE_BASE_LEVEL,e.baseLevel),e.context.texParameteri(e.target,e.context.TEXTURE_MAX_LEVEL,e.maxLevel),e.sendParametersTime.modified()},t.getInternalFormat=(h,y)=>(e._forceInternalFormat||(e.internalFormat=t.getDefaultInternalFormat(h,y)),e.internalFormat||$s(`Unable to find suitable internal format for T=${h} NC= ${y}`),[e.context.R32F,e.context.RG32F,e.context.RGB32F,e.context.RGBA32F].includes(e.internalFormat)&&!e.context.getExtension("OES_texture_float_linear")&&pu("Failed to load OES_texture_float_linear. Texture filtering is not available for *32F internal formats."),e.internalFormat),t.getDefaultInternalFormat=(h,y)=>{let p=0;return p=e._openGLRenderWindow.getDefaultTextureInternalFormat(h,y,r(),t.useHalfFloat()),p||(p||($s("Unsupported internal texture type!"),$s(`Unable to find suitable internal format for T=${h} NC= ${y}`)),p)},t.useHalfFloat=()=>e.enableUseHalfFloat&&e.canUseHalfFloat,t.setInternalFormat=h=>{e._forceInternalFormat=!0,h!==e.internalFormat&&(e.internalFormat=h,t.modified())},t.getFormat=(h,y)=>(e.format=t.getDefaultFormat(h,y),e.format),t.getDefaultFormat=(h,y)=>{switch(y){case 1:return e.context.RED;case 2:return e.context.RG;case 3:return e.context.RGB;case 4:return e.context.RGBA;default:return e.context.RGB}},t.resetFormatAndType=()=>{e._prevTexParams=null,e.format=0,e.internalFormat=0,e._forceInternalFormat=!1,e.openGLDataType=0},t.getDefaultDataType=h=>{let y=t.useHalfFloat();switch(h){case xe.UNSIGNED_CHAR:return e.context.UNSIGNED_BYTE;case(r()&&!y&&xe.SHORT):return e.context.SHORT;case(r()&&!y&&xe.UNSIGNED_SHORT):return e.context.UNSIGNED_SHORT;case(y&&xe.SHORT):case(y&&xe.UNSIGNED_SHORT):return e.context.HALF_FLOAT;case xe.FLOAT:case xe.VOID:default:return e.context.FLOAT}},t.getOpenGLDataType=(h,y=!1)=>((!e.openGLDataType||y)&&(e.openGLDataType=t.getDefaultDataType(h)),e.openGLDataType),t.getShiftAndScale=()=>{let h=0,y=1;switch(e.openGLDataType){case e.context.BYTE:y=127.5,h=y-128;break;case e.context.UNSIGNED_BYTE:y=255,h=0;break;case e.context.SHORT:y=32767.5,h=y-32768;break;case e.context.UNSIGNED_SHORT:y=65536,h=0;break;case e.context.INT:y=21474836475e-1,h=y-2147483648;break;case e.context.UNSIGNED_INT:y=4294967295,h=0;break;case e.context.FLOAT:default:break}return{shift:h,scale:y}},t.getOpenGLFilterMode=h=>{switch(h){case ke.NEAREST:return e.context.NEAREST;case ke.LINEAR:return e.context.LINEAR;case ke.NEAREST_MIPMAP_NEAREST:return e.context.NEAREST_MIPMAP_NEAREST;case ke.NEAREST_MIPMAP_LINEAR:return e.context.NEAREST_MIPMAP_LINEAR;case ke.LINEAR_MIPMAP_NEAREST:return e.context.LINEAR_MIPMAP_NEAREST;case ke.LINEAR_MIPMAP_LINEAR:return e.context.LINEAR_MIPMAP_LINEAR;default:return e.context.NEAREST}},t.getOpenGLWrapMode=h=>{switch(h){case Yt.CLAMP_TO_EDGE:return e.context.CLAMP_TO_EDGE;case Yt.REPEAT:return e.context.REPEAT;case Yt.MIRRORED_REPEAT:return e.context.MIRRORED_REPEAT;default:return e.context.CLAMP_TO_EDGE}};function a(h){let[y,p,v,x,S,T]=h;return[p-y+1,x-v+1,T-S+1]}function i(h){let[y,p,v]=a(h);return y*p*v}function s(h,y,p,v,x){let[S,T,d,C,w,D]=p,[m,M]=y,R=m*M,E=x;for(let V=w;V<=D;V++){let N=V*R;for(let _=d;_<=C;_++){let L=N+_*m;for(let B=L+S,b=L+T;B<=b;B++,E++)v[E]=h[B]}}}function o(h,y,p=null){let v=new(p||h.constructor)(y.reduce((T,d)=>T+i(d),0)),x=[e.width,e.height,e.depth],S=0;return y.forEach(T=>{s(h,x,T,v,S),S+=i(T)}),v}t.updateArrayDataTypeForGL=(h,y,p=!1,v=[])=>{let x=[],S=e.width*e.height*e.components;p&&(S*=e.depth);let T=!!v.length;if(h!==xe.FLOAT&&e.openGLDataType===e.context.FLOAT)for(let d=0;d<y.length;d++)if(y[d])if(T)x.push(o(y[d],v,Float32Array));else{let C=y[d].length>S?y[d].subarray(0,S):y[d];x.push(new Float32Array(C))}else x.push(null);if(h!==xe.UNSIGNED_CHAR&&e.openGLDataType===e.context.UNSIGNED_BYTE)for(let d=0;d<y.length;d++)if(y[d])if(T)x.push(o(y[d],v,Uint8Array));else{let C=y[d].length>S?y[d].subarray(0,S):y[d];x.push(new Uint8Array(C))}else x.push(null);if(e.openGLDataType===e.context.HALF_FLOAT)for(let d=0;d<y.length;d++)if(y[d]){let C=T?o(y[d],v):y[d],w=new Uint16Array(T?C.length:S),D=w.length;for(let m=0;m<D;m++)w[m]=lx(C[m]);x.push(w)}else x.push(null);if(x.length===0)for(let d=0;d<y.length;d++)x.push(T&&y[d]?o(y[d],v):y[d]);return x};function c(h){return e._openGLRenderWindow?!(e.resizable||e.renderable?.getResizable()||e._openGLRenderWindow.getGLInformations().RENDERER.value.match(/WebKit/gi)&&navigator.platform.match(/Mac/gi)&&r()&&(h===xe.UNSIGNED_SHORT||h===xe.SHORT)):!1}t.create2DFromRaw=({width:h=ge("width"),height:y=ge("height"),numComps:p=ge("numComps"),dataType:v=ge("dataType"),data:x=ge("data"),flip:S=!1}={})=>{if(t.getOpenGLDataType(v,!0),t.getInternalFormat(v,p),t.getFormat(v,p),!e.internalFormat||!e.format||!e.openGLDataType)return pr("Failed to determine texture parameters."),!1;e.target=e.context.TEXTURE_2D,e.components=p,e.width=h,e.height=y,e.depth=1,e.numberOfDimensions=2,e._openGLRenderWindow.activateTexture(t),t.createTexture(),t.bind();let T=[x],d=t.updateArrayDataTypeForGL(v,T);return e.context.pixelStorei(e.context.UNPACK_FLIP_Y_WEBGL,S),e.context.pixelStorei(e.context.UNPACK_ALIGNMENT,1),c(v)?(e.context.texStorage2D(e.target,1,e.internalFormat,e.width,e.height),d[0]!=null&&e.context.texSubImage2D(e.target,0,0,0,e.width,e.height,e.format,e.openGLDataType,d[0])):e.context.texImage2D(e.target,0,e.internalFormat,e.width,e.height,0,e.format,e.openGLDataType,d[0]),e.generateMipmap&&e.context.generateMipmap(e.target),S&&e.context.pixelStorei(e.context.UNPACK_FLIP_Y_WEBGL,!1),e.allocatedGPUMemoryInBytes=e.width*e.height*e.depth*p*e._openGLRenderWindow.getDefaultTextureByteSize(v,r(),t.useHalfFloat()),t.deactivate(),!0},t.createCubeFromRaw=({width:h=ge("width"),height:y=ge("height"),numComps:p=ge("numComps"),dataType:v=ge("dataType"),data:x=ge("data")}={})=>{if(t.getOpenGLDataType(v),t.getInternalFormat(v,p),t.getFormat(v,p),!e.internalFormat||!e.format||!e.openGLDataType)return pr("Failed to determine texture parameters."),!1;e.target=e.context.TEXTURE_CUBE_MAP,e.components=p,e.width=h,e.height=y,e.depth=1,e.numberOfDimensions=2,e._openGLRenderWindow.activateTexture(t),e.maxLevel=x.length/6-1,t.createTexture(),t.bind();let S=t.updateArrayDataTypeForGL(v,x),T=[],d=e.width,C=e.height;for(let w=0;w<S.length;w++){w%6===0&&w!==0&&(d/=2,C/=2),T[w]=cr(v,C*d*e.components);for(let D=0;D<C;++D){let m=D*d*e.components,M=(C-D-1)*d*e.components;T[w].set(S[w].slice(M,M+d*e.components),m)}}e.context.pixelStorei(e.context.UNPACK_ALIGNMENT,1),c(v)&&e.context.texStorage2D(e.target,6,e.internalFormat,e.width,e.height);for(let w=0;w<6;w++){let D=0,m=e.width,M=e.height;for(;m>=1&&M>=1;){let R=null;D<=e.maxLevel&&(R=T[6*D+w]),c(v)?R!=null&&e.context.texSubImage2D(e.context.TEXTURE_CUBE_MAP_POSITIVE_X+w,D,0,0,m,M,e.format,e.openGLDataType,R):e.context.texImage2D(e.context.TEXTURE_CUBE_MAP_POSITIVE_X+w,D,e.internalFormat,m,M,0,e.format,e.openGLDataType,R),D++,m/=2,M/=2}}return e.allocatedGPUMemoryInBytes=e.width*e.height*e.depth*p*e._openGLRenderWindow.getDefaultTextureByteSize(v,r(),t.useHalfFloat()),t.deactivate(),!0},t.createDepthFromRaw=({width:h=ge("width"),height:y=ge("height"),dataType:p=ge("dataType"),data:v=ge("data")}={})=>(t.getOpenGLDataType(p),e.format=e.context.DEPTH_COMPONENT,p===xe.FLOAT?e.internalFormat=e.context.DEPTH_COMPONENT32F:e.internalFormat=e.context.DEPTH_COMPONENT16,!e.internalFormat||!e.format||!e.openGLDataType?(pr("Failed to determine texture parameters."),!1):(e.target=e.context.TEXTURE_2D,e.components=1,e.width=h,e.height=y,e.depth=1,e.numberOfDimensions=2,e._openGLRenderWindow.activateTexture(t),t.createTexture(),t.bind(),e.context.pixelStorei(e.context.UNPACK_ALIGNMENT,1),c(p)?(e.context.texStorage2D(e.target,1,e.internalFormat,e.width,e.height),v!=null&&e.context.texSubImage2D(e.target,0,0,0,e.width,e.height,e.format,e.openGLDataType,v)):e.context.texImage2D(e.target,0,e.internalFormat,e.width,e.height,0,e.format,e.openGLDataType,v),e.generateMipmap&&e.context.generateMipmap(e.target),e.allocatedGPUMemoryInBytes=e.width*e.height*e.depth*e.components*e._openGLRenderWindow.getDefaultTextureByteSize(p,r(),t.useHalfFloat()),t.deactivate(),!0)),t.create2DFromImage=h=>{if(t.getOpenGLDataType(xe.UNSIGNED_CHAR),t.getInternalFormat(xe.UNSIGNED_CHAR,4),t.getFormat(xe.UNSIGNED_CHAR,4),!e.internalFormat||!e.format||!e.openGLDataType)return pr("Failed to determine texture parameters."),!1;e.target=e.context.TEXTURE_2D,e.components=4,e.depth=1,e.numberOfDimensions=2,e._openGLRenderWindow.activateTexture(t),t.createTexture(),t.bind();let y=h,p=h.width,v=h.height,x=!0;if(window.chrome){let S=new OffscreenCanvas(Rt(h.width),Rt(h.height));p=S.width,v=S.height;let T=S.getContext("2d");T.translate(0,S.height),T.scale(1,-1),T.drawImage(h,0,0,h.width,h.height,0,0,S.width,S.height),y=S,x=!1}return e.width=p,e.height=v,e.context.pixelStorei(e.context.UNPACK_FLIP_Y_WEBGL,x),e.context.pixelStorei(e.context.UNPACK_ALIGNMENT,1),c(xe.UNSIGNED_CHAR)?(e.context.texStorage2D(e.target,1,e.internalFormat,e.width,e.height),e.context.texSubImage2D(e.target,0,0,0,e.width,e.height,e.format,e.openGLDataType,y)):e.context.texImage2D(e.target,0,e.internalFormat,e.width,e.height,0,e.format,e.openGLDataType,y),e.generateMipmap&&e.context.generateMipmap(e.target),e.allocatedGPUMemoryInBytes=e.width*e.height*e.depth*e.components*e._openGLRenderWindow.getDefaultTextureByteSize(xe.UNSIGNED_CHAR,r(),t.useHalfFloat()),t.deactivate(),!0},t.create2DFromImageBitmap=h=>(t.getOpenGLDataType(xe.UNSIGNED_CHAR),t.getInternalFormat(xe.UNSIGNED_CHAR,4),t.getFormat(xe.UNSIGNED_CHAR,4),!e.internalFormat||!e.format||!e.openGLDataType?(pr("Failed to determine texture parameters."),!1):(e.target=e.context.TEXTURE_2D,e.components=4,e.depth=1,e.numberOfDimensions=2,e._openGLRenderWindow.activateTexture(t),t.createTexture(),t.bind(),e.context.pixelStorei(e.context.UNPACK_ALIGNMENT,1),e.width=h.width,e.height=h.height,c(xe.UNSIGNED_CHAR)?(e.context.texStorage2D(e.target,1,e.internalFormat,e.width,e.height),e.context.texSubImage2D(e.target,0,0,0,e.width,e.height,e.format,e.openGLDataType,h)):e.context.texImage2D(e.target,0,e.internalFormat,e.width,e.height,0,e.format,e.openGLDataType,h),e.generateMipmap&&e.context.generateMipmap(e.target),e.allocatedGPUMemoryInBytes=e.width*e.height*e.depth*e.components*e._openGLRenderWindow.getDefaultTextureByteSize(xe.UNSIGNED_CHAR,r(),t.useHalfFloat()),t.deactivate(),!0));function f(h,y,p){let v=new Array(p),x=new Array(p);for(let S=0;S<p;++S)v[S]=h[S],x[S]=y[S]-h[S]||1;return{scale:x,offset:v}}function u(h,y){for(let p=0;p<h.length;p++){let v=h[p],x=y[p]+v;if(v<-2048||v>2048||x<-2048||x>2048)return!1}return!0}function g(h,y,p,v){t.getOpenGLDataType(h);let x=u(y,p)||v;e.canUseHalfFloat=(e.openGLDataType===e.context.FLOAT&&e.context.getExtension("OES_texture_float_linear")===null&&x||e.openGLDataType===e.context.HALF_FLOAT)&&x}function l(h,y){let p=h.getNumberOfComponents(),v=h.getDataType(),x=h.getData(),S=new Array(p),T=new Array(p);for(let C=0;C<p;++C){let[w,D]=h.getRange(C);S[C]=w,T[C]=D}let d=f(S,T,p);return g(v,d.offset,d.scale,y),t.useHalfFloat()||t.getOpenGLDataType(v,!0),{numComps:p,dataType:v,data:x,scaleOffsets:d}}t.create2DFilterableFromRaw=({width:h=ge("width"),height:y=ge("height"),numComps:p=ge("numComps"),dataType:v=ge("dataType"),data:x=ge("data"),preferSizeOverAccuracy:S=!1,ranges:T=void 0}={})=>t.create2DFilterableFromDataArray({width:h,height:y,dataArray:Y.newInstance({numberOfComponents:p,dataType:v,values:x,ranges:T}),preferSizeOverAccuracy:S}),t.create2DFilterableFromDataArray=({width:h=ge("width"),height:y=ge("height"),dataArray:p=ge("dataArray"),preferSizeOverAccuracy:v=!1}={})=>{let{numComps:x,dataType:S,data:T}=l(p,v);t.create2DFromRaw({width:h,height:y,numComps:x,dataType:S,data:T})},t.updateVolumeInfoForGL=(h,y)=>{let p=!1,v=t.useHalfFloat();(!e.volumeInfo?.scale||!e.volumeInfo?.offset)&&(e.volumeInfo={scale:new Array(y),offset:new Array(y)});for(let x=0;x<y;++x)e.volumeInfo.scale[x]=1,e.volumeInfo.offset[x]=0;if(r()&&!v&&h===xe.SHORT){for(let x=0;x<y;++x)e.volumeInfo.scale[x]=32767;p=!0}if(r()&&!v&&h===xe.UNSIGNED_SHORT){for(let x=0;x<y;++x)e.volumeInfo.scale[x]=65535;p=!0}if(h===xe.UNSIGNED_CHAR){for(let x=0;x<y;++x)e.volumeInfo.scale[x]=255;p=!0}return(h===xe.FLOAT||v&&(h===xe.SHORT||h===xe.UNSIGNED_SHORT))&&(p=!0),p},t.create3DFromRaw=({width:h=ge("width"),height:y=ge("height"),depth:p=ge("depth"),numComps:v=ge("numComps"),dataType:x=ge("dataType"),data:S=ge("data"),updatedExtents:T=[]}={})=>{let d=x,C=S;if(!t.updateVolumeInfoForGL(d,v)&&C){let R=h*y*p,E=structuredClone(e.volumeInfo),V=new Float32Array(R*v);e.volumeInfo.offset=E.offset,e.volumeInfo.scale=E.scale;let N=0,_=E.scale.map(L=>1/L);for(let L=0;L<R;L++)for(let B=0;B<v;B++)V[N]=(C[N]-E.offset[B])*_[B],N++;d=xe.FLOAT,C=V}if(t.getOpenGLDataType(d),t.getInternalFormat(d,v),t.getFormat(d,v),!e.internalFormat||!e.format||!e.openGLDataType)return pr("Failed to determine texture parameters."),!1;e.target=e.context.TEXTURE_3D,e.components=v,e.width=h,e.height=y,e.depth=p,e.numberOfDimensions=3,e._openGLRenderWindow.activateTexture(t),t.createTexture(),t.bind();let w=T.length>0,D=!w||!(0,hu.default)(e._prevTexParams,n()),m=[C],M=t.updateArrayDataTypeForGL(d,m,!0,D?[]:T);if(e.context.pixelStorei(e.context.UNPACK_ALIGNMENT,1),D)c(d)?(e.context.texStorage3D(e.target,1,e.internalFormat,e.width,e.height,e.depth),M[0]!=null&&e.context.texSubImage3D(e.target,0,0,0,0,e.width,e.height,e.depth,e.format,e.openGLDataType,M[0])):e.context.texImage3D(e.target,0,e.internalFormat,e.width,e.height,e.depth,0,e.format,e.openGLDataType,M[0]),e._prevTexParams=n();else if(w){let R=M[0],E=0;for(let V=0;V<T.length;V++){let N=T[V],_=a(N),L=i(N),B=new R.constructor(R.buffer,E,L);E+=B.byteLength,e.context.texSubImage3D(e.target,0,N[0],N[2],N[4],_[0],_[1],_[2],e.format,e.openGLDataType,B)}}return e.generateMipmap&&e.context.generateMipmap(e.target),e.allocatedGPUMemoryInBytes=e.width*e.height*e.depth*e.components*e._openGLRenderWindow.getDefaultTextureByteSize(d,r(),t.useHalfFloat()),t.deactivate(),!0},t.create3DFilterableFromRaw=({width:h=ge("width"),height:y=ge("height"),depth:p=ge("depth"),numComps:v=ge("numComps"),dataType:x=ge("dataType"),data:S=ge("data"),preferSizeOverAccuracy:T=!1,ranges:d=void 0,updatedExtents:C=[]}={})=>t.create3DFilterableFromDataArray({width:h,height:y,depth:p,dataArray:Y.newInstance({numberOfComponents:v,dataType:x,values:S,ranges:d}),preferSizeOverAccuracy:T,updatedExtents:C}),t.create3DFilterableFromDataArray=({width:h=ge("width"),height:y=ge("height"),depth:p=ge("depth"),dataArray:v=ge("dataArray"),preferSizeOverAccuracy:x=!1,updatedExtents:S=[]}={})=>{let{numComps:T,dataType:d,data:C,scaleOffsets:w}=l(v,x),D=[],m=[];for(let M=0;M<T;++M)D[M]=0,m[M]=1;return e.volumeInfo={scale:m,offset:D,dataComputedScale:w.scale,dataComputedOffset:w.offset,width:h,height:y,depth:p},t.create3DFromRaw({width:h,height:y,depth:p,numComps:T,dataType:d,data:C,updatedExtents:S})},t.setOpenGLRenderWindow=h=>{e._openGLRenderWindow!==h&&(t.releaseGraphicsResources(),e._openGLRenderWindow=h,e.context=null,h&&(e.context=e._openGLRenderWindow.getContext()))},t.getMaximumTextureSize=h=>h&&h.isCurrent()?h.getIntegerv(h.MAX_TEXTURE_SIZE):-1,t.enableUseHalfFloat=h=>{e.enableUseHalfFloat=h}}var px={_openGLRenderWindow:null,_forceInternalFormat:!1,_prevTexParams:null,context:null,handle:0,sendParametersTime:null,textureBuildTime:null,numberOfDimensions:0,target:0,format:0,openGLDataType:0,components:0,width:0,height:0,depth:0,autoParameters:!0,wrapS:Yt.CLAMP_TO_EDGE,wrapT:Yt.CLAMP_TO_EDGE,wrapR:Yt.CLAMP_TO_EDGE,minificationFilter:ke.NEAREST,magnificationFilter:ke.NEAREST,minLOD:-1e3,maxLOD:1e3,baseLevel:0,maxLevel:1e3,generateMipmap:!1,oglNorm16Ext:null,allocatedGPUMemoryInBytes:0,enableUseHalfFloat:!0,canUseHalfFloat:!1};function vu(t,e,n={}){Object.assign(e,px,n),ue.extend(t,e,n),e.sendParametersTime={},se(e.sendParametersTime,{mtime:0}),e.textureBuildTime={},se(e.textureBuildTime,{mtime:0}),Ir(t,e,["format","openGLDataType"]),ie(t,e,["keyMatrixTime","minificationFilter","magnificationFilter","wrapS","wrapT","wrapR","generateMipmap","oglNorm16Ext"]),Oe(t,e,["width","height","volumeInfo","components","handle","target","allocatedGPUMemoryInBytes"]),sn(t,e,["openGLRenderWindow"]),gx(t,e)}var du=J(vu,"vtkOpenGLTexture"),de={newInstance:du,extend:vu,...Is};le("vtkTexture",du);var qt={};or(qt,{ARRAY_TYPE:()=>Se,EPSILON:()=>ne,RANDOM:()=>lt,equals:()=>Tx,setMatrixArrayType:()=>hx,toRadian:()=>dx});var ne=1e-6,Se=typeof Float32Array<"u"?Float32Array:Array,lt=Math.random;function hx(t){Se=t}var vx=Math.PI/180;function dx(t){return t*vx}function Tx(t,e){return Math.abs(t-e)<=ne*Math.max(1,Math.abs(t),Math.abs(e))}Math.hypot||(Math.hypot=function(){for(var t=0,e=arguments.length;e--;)t+=arguments[e]*arguments[e];return Math.sqrt(t)});var K={};or(K,{add:()=>Wx,adjoint:()=>Mx,clone:()=>yx,copy:()=>mx,create:()=>Ks,determinant:()=>Ex,equals:()=>Ix,exactEquals:()=>Hx,frob:()=>zx,fromMat2d:()=>Bx,fromMat4:()=>xx,fromQuat:()=>Gx,fromRotation:()=>Fx,fromScaling:()=>Nx,fromTranslation:()=>_x,fromValues:()=>Sx,identity:()=>wx,invert:()=>Rx,mul:()=>jx,multiply:()=>Tu,multiplyScalar:()=>Ax,multiplyScalarAndAdd:()=>Px,normalFromMat4:()=>Ux,projection:()=>kx,rotate:()=>Vx,scale:()=>Lx,set:()=>Cx,str:()=>bx,sub:()=>$x,subtract:()=>xu,translate:()=>Dx,transpose:()=>Ox});function Ks(){var t=new Se(9);return Se!=Float32Array&&(t[1]=0,t[2]=0,t[3]=0,t[5]=0,t[6]=0,t[7]=0),t[0]=1,t[4]=1,t[8]=1,t}function xx(t,e){return t[0]=e[0],t[1]=e[1],t[2]=e[2],t[3]=e[4],t[4]=e[5],t[5]=e[6],t[6]=e[8],t[7]=e[9],t[8]=e[10],t}function yx(t){var e=new Se(9);return e[0]=t[0],e[1]=t[1],e[2]=t[2],e[3]=t[3],e[4]=t[4],e[5]=t[5],e[6]=t[6],e[7]=t[7],e[8]=t[8],e}function mx(t,e){return t[0]=e[0],t[1]=e[1],t[2]=e[2],t[3]=e[3],t[4]=e[4],t[5]=e[5],t[6]=e[6],t[7]=e[7],t[8]=e[8],t}function Sx(t,e,n,r,a,i,s,o,c){var f=new Se(9);return f[0]=t,f[1]=e,f[2]=n,f[3]=r,f[4]=a,f[5]=i,f[6]=s,f[7]=o,f[8]=c,f}function Cx(t,e,n,r,a,i,s,o,c,f){return t[0]=e,t[1]=n,t[2]=r,t[3]=a,t[4]=i,t[5]=s,t[6]=o,t[7]=c,t[8]=f,t}function wx(t){return t[0]=1,t[1]=0,t[2]=0,t[3]=0,t[4]=1,t[5]=0,t[6]=0,t[7]=0,t[8]=1,t}function Ox(t,e){if(t===e){var n=e[1],r=e[2],a=e[5];t[1]=e[3],t[2]=e[6],t[3]=n,t[5]=e[7],t[6]=r,t[7]=a}else t[0]=e[0],t[1]=e[3],t[2]=e[6],t[3]=e[1],t[4]=e[4],t[5]=e[7],t[6]=e[2],t[7]=e[5],t[8]=e[8];return t}function Rx(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=e[4],o=e[5],c=e[6],f=e[7],u=e[8],g=u*s-o*f,l=-u*i+o*c,h=f*i-s*c,y=n*g+r*l+a*h;return y?(y=1/y,t[0]=g*y,t[1]=(-u*r+a*f)*y,t[2]=(o*r-a*s)*y,t[3]=l*y,t[4]=(u*n-a*c)*y,t[5]=(-o*n+a*i)*y,t[6]=h*y,t[7]=(-f*n+r*c)*y,t[8]=(s*n-r*i)*y,t):null}function Mx(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=e[4],o=e[5],c=e[6],f=e[7],u=e[8];return t[0]=s*u-o*f,t[1]=a*f-r*u,t[2]=r*o-a*s,t[3]=o*c-i*u,t[4]=n*u-a*c,t[5]=a*i-n*o,t[6]=i*f-s*c,t[7]=r*c-n*f,t[8]=n*s-r*i,t}function Ex(t){var e=t[0],n=t[1],r=t[2],a=t[3],i=t[4],s=t[5],o=t[6],c=t[7],f=t[8];return e*(f*i-s*c)+n*(-f*a+s*o)+r*(c*a-i*o)}function Tu(t,e,n){var r=e[0],a=e[1],i=e[2],s=e[3],o=e[4],c=e[5],f=e[6],u=e[7],g=e[8],l=n[0],h=n[1],y=n[2],p=n[3],v=n[4],x=n[5],S=n[6],T=n[7],d=n[8];return t[0]=l*r+h*s+y*f,t[1]=l*a+h*o+y*u,t[2]=l*i+h*c+y*g,t[3]=p*r+v*s+x*f,t[4]=p*a+v*o+x*u,t[5]=p*i+v*c+x*g,t[6]=S*r+T*s+d*f,t[7]=S*a+T*o+d*u,t[8]=S*i+T*c+d*g,t}function Dx(t,e,n){var r=e[0],a=e[1],i=e[2],s=e[3],o=e[4],c=e[5],f=e[6],u=e[7],g=e[8],l=n[0],h=n[1];return t[0]=r,t[1]=a,t[2]=i,t[3]=s,t[4]=o,t[5]=c,t[6]=l*r+h*s+f,t[7]=l*a+h*o+u,t[8]=l*i+h*c+g,t}function Vx(t,e,n){var r=e[0],a=e[1],i=e[2],s=e[3],o=e[4],c=e[5],f=e[6],u=e[7],g=e[8],l=Math.sin(n),h=Math.cos(n);return t[0]=h*r+l*s,t[1]=h*a+l*o,t[2]=h*i+l*c,t[3]=h*s-l*r,t[4]=h*o-l*a,t[5]=h*c-l*i,t[6]=f,t[7]=u,t[8]=g,t}function Lx(t,e,n){var r=n[0],a=n[1];return t[0]=r*e[0],t[1]=r*e[1],t[2]=r*e[2],t[3]=a*e[3],t[4]=a*e[4],t[5]=a*e[5],t[6]=e[6],t[7]=e[7],t[8]=e[8],t}function _x(t,e){return t[0]=1,t[1]=0,t[2]=0,t[3]=0,t[4]=1,t[5]=0,t[6]=e[0],t[7]=e[1],t[8]=1,t}function Fx(t,e){var n=Math.sin(e),r=Math.cos(e);return t[0]=r,t[1]=n,t[2]=0,t[3]=-n,t[4]=r,t[5]=0,t[6]=0,t[7]=0,t[8]=1,t}function Nx(t,e){return t[0]=e[0],t[1]=0,t[2]=0,t[3]=0,t[4]=e[1],t[5]=0,t[6]=0,t[7]=0,t[8]=1,t}function Bx(t,e){return t[0]=e[0],t[1]=e[1],t[2]=0,t[3]=e[2],t[4]=e[3],t[5]=0,t[6]=e[4],t[7]=e[5],t[8]=1,t}function Gx(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=n+n,o=r+r,c=a+a,f=n*s,u=r*s,g=r*o,l=a*s,h=a*o,y=a*c,p=i*s,v=i*o,x=i*c;return t[0]=1-g-y,t[3]=u-x,t[6]=l+v,t[1]=u+x,t[4]=1-f-y,t[7]=h-p,t[2]=l-v,t[5]=h+p,t[8]=1-f-g,t}function Ux(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=e[4],o=e[5],c=e[6],f=e[7],u=e[8],g=e[9],l=e[10],h=e[11],y=e[12],p=e[13],v=e[14],x=e[15],S=n*o-r*s,T=n*c-a*s,d=n*f-i*s,C=r*c-a*o,w=r*f-i*o,D=a*f-i*c,m=u*p-g*y,M=u*v-l*y,R=u*x-h*y,E=g*v-l*p,V=g*x-h*p,N=l*x-h*v,_=S*N-T*V+d*E+C*R-w*M+D*m;return _?(_=1/_,t[0]=(o*N-c*V+f*E)*_,t[1]=(c*R-s*N-f*M)*_,t[2]=(s*V-o*R+f*m)*_,t[3]=(a*V-r*N-i*E)*_,t[4]=(n*N-a*R+i*M)*_,t[5]=(r*R-n*V-i*m)*_,t[6]=(p*D-v*w+x*C)*_,t[7]=(v*d-y*D-x*T)*_,t[8]=(y*w-p*d+x*S)*_,t):null}function kx(t,e,n){return t[0]=2/e,t[1]=0,t[2]=0,t[3]=0,t[4]=-2/n,t[5]=0,t[6]=-1,t[7]=1,t[8]=1,t}function bx(t){return"mat3("+t[0]+", "+t[1]+", "+t[2]+", "+t[3]+", "+t[4]+", "+t[5]+", "+t[6]+", "+t[7]+", "+t[8]+")"}function zx(t){return Math.hypot(t[0],t[1],t[2],t[3],t[4],t[5],t[6],t[7],t[8])}function Wx(t,e,n){return t[0]=e[0]+n[0],t[1]=e[1]+n[1],t[2]=e[2]+n[2],t[3]=e[3]+n[3],t[4]=e[4]+n[4],t[5]=e[5]+n[5],t[6]=e[6]+n[6],t[7]=e[7]+n[7],t[8]=e[8]+n[8],t}function xu(t,e,n){return t[0]=e[0]-n[0],t[1]=e[1]-n[1],t[2]=e[2]-n[2],t[3]=e[3]-n[3],t[4]=e[4]-n[4],t[5]=e[5]-n[5],t[6]=e[6]-n[6],t[7]=e[7]-n[7],t[8]=e[8]-n[8],t}function Ax(t,e,n){return t[0]=e[0]*n,t[1]=e[1]*n,t[2]=e[2]*n,t[3]=e[3]*n,t[4]=e[4]*n,t[5]=e[5]*n,t[6]=e[6]*n,t[7]=e[7]*n,t[8]=e[8]*n,t}function Px(t,e,n,r){return t[0]=e[0]+n[0]*r,t[1]=e[1]+n[1]*r,t[2]=e[2]+n[2]*r,t[3]=e[3]+n[3]*r,t[4]=e[4]+n[4]*r,t[5]=e[5]+n[5]*r,t[6]=e[6]+n[6]*r,t[7]=e[7]+n[7]*r,t[8]=e[8]+n[8]*r,t}function Hx(t,e){return t[0]===e[0]&&t[1]===e[1]&&t[2]===e[2]&&t[3]===e[3]&&t[4]===e[4]&&t[5]===e[5]&&t[6]===e[6]&&t[7]===e[7]&&t[8]===e[8]}function Ix(t,e){var n=t[0],r=t[1],a=t[2],i=t[3],s=t[4],o=t[5],c=t[6],f=t[7],u=t[8],g=e[0],l=e[1],h=e[2],y=e[3],p=e[4],v=e[5],x=e[6],S=e[7],T=e[8];return Math.abs(n-g)<=ne*Math.max(1,Math.abs(n),Math.abs(g))&&Math.abs(r-l)<=ne*Math.max(1,Math.abs(r),Math.abs(l))&&Math.abs(a-h)<=ne*Math.max(1,Math.abs(a),Math.abs(h))&&Math.abs(i-y)<=ne*Math.max(1,Math.abs(i),Math.abs(y))&&Math.abs(s-p)<=ne*Math.max(1,Math.abs(s),Math.abs(p))&&Math.abs(o-v)<=ne*Math.max(1,Math.abs(o),Math.abs(v))&&Math.abs(c-x)<=ne*Math.max(1,Math.abs(c),Math.abs(x))&&Math.abs(f-S)<=ne*Math.max(1,Math.abs(f),Math.abs(S))&&Math.abs(u-T)<=ne*Math.max(1,Math.abs(u),Math.abs(T))}var jx=Tu,$x=xu;var F={};or(F,{add:()=>Ly,adjoint:()=>ey,clone:()=>Xx,copy:()=>Yx,create:()=>Kx,determinant:()=>ty,equals:()=>By,exactEquals:()=>Ny,frob:()=>Vy,fromQuat:()=>yy,fromQuat2:()=>hy,fromRotation:()=>uy,fromRotationTranslation:()=>Su,fromRotationTranslationScale:()=>Ty,fromRotationTranslationScaleOrigin:()=>xy,fromScaling:()=>fy,fromTranslation:()=>cy,fromValues:()=>qx,fromXRotation:()=>ly,fromYRotation:()=>gy,fromZRotation:()=>py,frustum:()=>my,getRotation:()=>dy,getScaling:()=>Cu,getTranslation:()=>vy,identity:()=>yu,invert:()=>Jx,lookAt:()=>My,mul:()=>Gy,multiply:()=>mu,multiplyScalar:()=>_y,multiplyScalarAndAdd:()=>Fy,ortho:()=>Oy,orthoNO:()=>Ou,orthoZO:()=>Ry,perspective:()=>Sy,perspectiveFromFieldOfView:()=>wy,perspectiveNO:()=>wu,perspectiveZO:()=>Cy,rotate:()=>ay,rotateX:()=>iy,rotateY:()=>sy,rotateZ:()=>oy,scale:()=>ry,set:()=>Zx,str:()=>Dy,sub:()=>Uy,subtract:()=>Ru,targetTo:()=>Ey,translate:()=>ny,transpose:()=>Qx});function Kx(){var t=new Se(16);return Se!=Float32Array&&(t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[11]=0,t[12]=0,t[13]=0,t[14]=0),t[0]=1,t[5]=1,t[10]=1,t[15]=1,t}function Xx(t){var e=new Se(16);return e[0]=t[0],e[1]=t[1],e[2]=t[2],e[3]=t[3],e[4]=t[4],e[5]=t[5],e[6]=t[6],e[7]=t[7],e[8]=t[8],e[9]=t[9],e[10]=t[10],e[11]=t[11],e[12]=t[12],e[13]=t[13],e[14]=t[14],e[15]=t[15],e}function Yx(t,e){return t[0]=e[0],t[1]=e[1],t[2]=e[2],t[3]=e[3],t[4]=e[4],t[5]=e[5],t[6]=e[6],t[7]=e[7],t[8]=e[8],t[9]=e[9],t[10]=e[10],t[11]=e[11],t[12]=e[12],t[13]=e[13],t[14]=e[14],t[15]=e[15],t}function qx(t,e,n,r,a,i,s,o,c,f,u,g,l,h,y,p){var v=new Se(16);return v[0]=t,v[1]=e,v[2]=n,v[3]=r,v[4]=a,v[5]=i,v[6]=s,v[7]=o,v[8]=c,v[9]=f,v[10]=u,v[11]=g,v[12]=l,v[13]=h,v[14]=y,v[15]=p,v}function Zx(t,e,n,r,a,i,s,o,c,f,u,g,l,h,y,p,v){return t[0]=e,t[1]=n,t[2]=r,t[3]=a,t[4]=i,t[5]=s,t[6]=o,t[7]=c,t[8]=f,t[9]=u,t[10]=g,t[11]=l,t[12]=h,t[13]=y,t[14]=p,t[15]=v,t}function yu(t){return t[0]=1,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=1,t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[10]=1,t[11]=0,t[12]=0,t[13]=0,t[14]=0,t[15]=1,t}function Qx(t,e){if(t===e){var n=e[1],r=e[2],a=e[3],i=e[6],s=e[7],o=e[11];t[1]=e[4],t[2]=e[8],t[3]=e[12],t[4]=n,t[6]=e[9],t[7]=e[13],t[8]=r,t[9]=i,t[11]=e[14],t[12]=a,t[13]=s,t[14]=o}else t[0]=e[0],t[1]=e[4],t[2]=e[8],t[3]=e[12],t[4]=e[1],t[5]=e[5],t[6]=e[9],t[7]=e[13],t[8]=e[2],t[9]=e[6],t[10]=e[10],t[11]=e[14],t[12]=e[3],t[13]=e[7],t[14]=e[11],t[15]=e[15];return t}function Jx(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=e[4],o=e[5],c=e[6],f=e[7],u=e[8],g=e[9],l=e[10],h=e[11],y=e[12],p=e[13],v=e[14],x=e[15],S=n*o-r*s,T=n*c-a*s,d=n*f-i*s,C=r*c-a*o,w=r*f-i*o,D=a*f-i*c,m=u*p-g*y,M=u*v-l*y,R=u*x-h*y,E=g*v-l*p,V=g*x-h*p,N=l*x-h*v,_=S*N-T*V+d*E+C*R-w*M+D*m;return _?(_=1/_,t[0]=(o*N-c*V+f*E)*_,t[1]=(a*V-r*N-i*E)*_,t[2]=(p*D-v*w+x*C)*_,t[3]=(l*w-g*D-h*C)*_,t[4]=(c*R-s*N-f*M)*_,t[5]=(n*N-a*R+i*M)*_,t[6]=(v*d-y*D-x*T)*_,t[7]=(u*D-l*d+h*T)*_,t[8]=(s*V-o*R+f*m)*_,t[9]=(r*R-n*V-i*m)*_,t[10]=(y*w-p*d+x*S)*_,t[11]=(g*d-u*w-h*S)*_,t[12]=(o*M-s*E-c*m)*_,t[13]=(n*E-r*M+a*m)*_,t[14]=(p*T-y*C-v*S)*_,t[15]=(u*C-g*T+l*S)*_,t):null}function ey(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=e[4],o=e[5],c=e[6],f=e[7],u=e[8],g=e[9],l=e[10],h=e[11],y=e[12],p=e[13],v=e[14],x=e[15];return t[0]=o*(l*x-h*v)-g*(c*x-f*v)+p*(c*h-f*l),t[1]=-(r*(l*x-h*v)-g*(a*x-i*v)+p*(a*h-i*l)),t[2]=r*(c*x-f*v)-o*(a*x-i*v)+p*(a*f-i*c),t[3]=-(r*(c*h-f*l)-o*(a*h-i*l)+g*(a*f-i*c)),t[4]=-(s*(l*x-h*v)-u*(c*x-f*v)+y*(c*h-f*l)),t[5]=n*(l*x-h*v)-u*(a*x-i*v)+y*(a*h-i*l),t[6]=-(n*(c*x-f*v)-s*(a*x-i*v)+y*(a*f-i*c)),t[7]=n*(c*h-f*l)-s*(a*h-i*l)+u*(a*f-i*c),t[8]=s*(g*x-h*p)-u*(o*x-f*p)+y*(o*h-f*g),t[9]=-(n*(g*x-h*p)-u*(r*x-i*p)+y*(r*h-i*g)),t[10]=n*(o*x-f*p)-s*(r*x-i*p)+y*(r*f-i*o),t[11]=-(n*(o*h-f*g)-s*(r*h-i*g)+u*(r*f-i*o)),t[12]=-(s*(g*v-l*p)-u*(o*v-c*p)+y*(o*l-c*g)),t[13]=n*(g*v-l*p)-u*(r*v-a*p)+y*(r*l-a*g),t[14]=-(n*(o*v-c*p)-s*(r*v-a*p)+y*(r*c-a*o)),t[15]=n*(o*l-c*g)-s*(r*l-a*g)+u*(r*c-a*o),t}function ty(t){var e=t[0],n=t[1],r=t[2],a=t[3],i=t[4],s=t[5],o=t[6],c=t[7],f=t[8],u=t[9],g=t[10],l=t[11],h=t[12],y=t[13],p=t[14],v=t[15],x=e*s-n*i,S=e*o-r*i,T=e*c-a*i,d=n*o-r*s,C=n*c-a*s,w=r*c-a*o,D=f*y-u*h,m=f*p-g*h,M=f*v-l*h,R=u*p-g*y,E=u*v-l*y,V=g*v-l*p;return x*V-S*E+T*R+d*M-C*m+w*D}function mu(t,e,n){var r=e[0],a=e[1],i=e[2],s=e[3],o=e[4],c=e[5],f=e[6],u=e[7],g=e[8],l=e[9],h=e[10],y=e[11],p=e[12],v=e[13],x=e[14],S=e[15],T=n[0],d=n[1],C=n[2],w=n[3];return t[0]=T*r+d*o+C*g+w*p,t[1]=T*a+d*c+C*l+w*v,t[2]=T*i+d*f+C*h+w*x,t[3]=T*s+d*u+C*y+w*S,T=n[4],d=n[5],C=n[6],w=n[7],t[4]=T*r+d*o+C*g+w*p,t[5]=T*a+d*c+C*l+w*v,t[6]=T*i+d*f+C*h+w*x,t[7]=T*s+d*u+C*y+w*S,T=n[8],d=n[9],C=n[10],w=n[11],t[8]=T*r+d*o+C*g+w*p,t[9]=T*a+d*c+C*l+w*v,t[10]=T*i+d*f+C*h+w*x,t[11]=T*s+d*u+C*y+w*S,T=n[12],d=n[13],C=n[14],w=n[15],t[12]=T*r+d*o+C*g+w*p,t[13]=T*a+d*c+C*l+w*v,t[14]=T*i+d*f+C*h+w*x,t[15]=T*s+d*u+C*y+w*S,t}function ny(t,e,n){var r=n[0],a=n[1],i=n[2],s,o,c,f,u,g,l,h,y,p,v,x;return e===t?(t[12]=e[0]*r+e[4]*a+e[8]*i+e[12],t[13]=e[1]*r+e[5]*a+e[9]*i+e[13],t[14]=e[2]*r+e[6]*a+e[10]*i+e[14],t[15]=e[3]*r+e[7]*a+e[11]*i+e[15]):(s=e[0],o=e[1],c=e[2],f=e[3],u=e[4],g=e[5],l=e[6],h=e[7],y=e[8],p=e[9],v=e[10],x=e[11],t[0]=s,t[1]=o,t[2]=c,t[3]=f,t[4]=u,t[5]=g,t[6]=l,t[7]=h,t[8]=y,t[9]=p,t[10]=v,t[11]=x,t[12]=s*r+u*a+y*i+e[12],t[13]=o*r+g*a+p*i+e[13],t[14]=c*r+l*a+v*i+e[14],t[15]=f*r+h*a+x*i+e[15]),t}function ry(t,e,n){var r=n[0],a=n[1],i=n[2];return t[0]=e[0]*r,t[1]=e[1]*r,t[2]=e[2]*r,t[3]=e[3]*r,t[4]=e[4]*a,t[5]=e[5]*a,t[6]=e[6]*a,t[7]=e[7]*a,t[8]=e[8]*i,t[9]=e[9]*i,t[10]=e[10]*i,t[11]=e[11]*i,t[12]=e[12],t[13]=e[13],t[14]=e[14],t[15]=e[15],t}function ay(t,e,n,r){var a=r[0],i=r[1],s=r[2],o=Math.hypot(a,i,s),c,f,u,g,l,h,y,p,v,x,S,T,d,C,w,D,m,M,R,E,V,N,_,L;return o<ne?null:(o=1/o,a*=o,i*=o,s*=o,c=Math.sin(n),f=Math.cos(n),u=1-f,g=e[0],l=e[1],h=e[2],y=e[3],p=e[4],v=e[5],x=e[6],S=e[7],T=e[8],d=e[9],C=e[10],w=e[11],D=a*a*u+f,m=i*a*u+s*c,M=s*a*u-i*c,R=a*i*u-s*c,E=i*i*u+f,V=s*i*u+a*c,N=a*s*u+i*c,_=i*s*u-a*c,L=s*s*u+f,t[0]=g*D+p*m+T*M,t[1]=l*D+v*m+d*M,t[2]=h*D+x*m+C*M,t[3]=y*D+S*m+w*M,t[4]=g*R+p*E+T*V,t[5]=l*R+v*E+d*V,t[6]=h*R+x*E+C*V,t[7]=y*R+S*E+w*V,t[8]=g*N+p*_+T*L,t[9]=l*N+v*_+d*L,t[10]=h*N+x*_+C*L,t[11]=y*N+S*_+w*L,e!==t&&(t[12]=e[12],t[13]=e[13],t[14]=e[14],t[15]=e[15]),t)}function iy(t,e,n){var r=Math.sin(n),a=Math.cos(n),i=e[4],s=e[5],o=e[6],c=e[7],f=e[8],u=e[9],g=e[10],l=e[11];return e!==t&&(t[0]=e[0],t[1]=e[1],t[2]=e[2],t[3]=e[3],t[12]=e[12],t[13]=e[13],t[14]=e[14],t[15]=e[15]),t[4]=i*a+f*r,t[5]=s*a+u*r,t[6]=o*a+g*r,t[7]=c*a+l*r,t[8]=f*a-i*r,t[9]=u*a-s*r,t[10]=g*a-o*r,t[11]=l*a-c*r,t}function sy(t,e,n){var r=Math.sin(n),a=Math.cos(n),i=e[0],s=e[1],o=e[2],c=e[3],f=e[8],u=e[9],g=e[10],l=e[11];return e!==t&&(t[4]=e[4],t[5]=e[5],t[6]=e[6],t[7]=e[7],t[12]=e[12],t[13]=e[13],t[14]=e[14],t[15]=e[15]),t[0]=i*a-f*r,t[1]=s*a-u*r,t[2]=o*a-g*r,t[3]=c*a-l*r,t[8]=i*r+f*a,t[9]=s*r+u*a,t[10]=o*r+g*a,t[11]=c*r+l*a,t}function oy(t,e,n){var r=Math.sin(n),a=Math.cos(n),i=e[0],s=e[1],o=e[2],c=e[3],f=e[4],u=e[5],g=e[6],l=e[7];return e!==t&&(t[8]=e[8],t[9]=e[9],t[10]=e[10],t[11]=e[11],t[12]=e[12],t[13]=e[13],t[14]=e[14],t[15]=e[15]),t[0]=i*a+f*r,t[1]=s*a+u*r,t[2]=o*a+g*r,t[3]=c*a+l*r,t[4]=f*a-i*r,t[5]=u*a-s*r,t[6]=g*a-o*r,t[7]=l*a-c*r,t}function cy(t,e){return t[0]=1,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=1,t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[10]=1,t[11]=0,t[12]=e[0],t[13]=e[1],t[14]=e[2],t[15]=1,t}function fy(t,e){return t[0]=e[0],t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=e[1],t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[10]=e[2],t[11]=0,t[12]=0,t[13]=0,t[14]=0,t[15]=1,t}function uy(t,e,n){var r=n[0],a=n[1],i=n[2],s=Math.hypot(r,a,i),o,c,f;return s<ne?null:(s=1/s,r*=s,a*=s,i*=s,o=Math.sin(e),c=Math.cos(e),f=1-c,t[0]=r*r*f+c,t[1]=a*r*f+i*o,t[2]=i*r*f-a*o,t[3]=0,t[4]=r*a*f-i*o,t[5]=a*a*f+c,t[6]=i*a*f+r*o,t[7]=0,t[8]=r*i*f+a*o,t[9]=a*i*f-r*o,t[10]=i*i*f+c,t[11]=0,t[12]=0,t[13]=0,t[14]=0,t[15]=1,t)}function ly(t,e){var n=Math.sin(e),r=Math.cos(e);return t[0]=1,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=r,t[6]=n,t[7]=0,t[8]=0,t[9]=-n,t[10]=r,t[11]=0,t[12]=0,t[13]=0,t[14]=0,t[15]=1,t}function gy(t,e){var n=Math.sin(e),r=Math.cos(e);return t[0]=r,t[1]=0,t[2]=-n,t[3]=0,t[4]=0,t[5]=1,t[6]=0,t[7]=0,t[8]=n,t[9]=0,t[10]=r,t[11]=0,t[12]=0,t[13]=0,t[14]=0,t[15]=1,t}function py(t,e){var n=Math.sin(e),r=Math.cos(e);return t[0]=r,t[1]=n,t[2]=0,t[3]=0,t[4]=-n,t[5]=r,t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[10]=1,t[11]=0,t[12]=0,t[13]=0,t[14]=0,t[15]=1,t}function Su(t,e,n){var r=e[0],a=e[1],i=e[2],s=e[3],o=r+r,c=a+a,f=i+i,u=r*o,g=r*c,l=r*f,h=a*c,y=a*f,p=i*f,v=s*o,x=s*c,S=s*f;return t[0]=1-(h+p),t[1]=g+S,t[2]=l-x,t[3]=0,t[4]=g-S,t[5]=1-(u+p),t[6]=y+v,t[7]=0,t[8]=l+x,t[9]=y-v,t[10]=1-(u+h),t[11]=0,t[12]=n[0],t[13]=n[1],t[14]=n[2],t[15]=1,t}function hy(t,e){var n=new Se(3),r=-e[0],a=-e[1],i=-e[2],s=e[3],o=e[4],c=e[5],f=e[6],u=e[7],g=r*r+a*a+i*i+s*s;return g>0?(n[0]=(o*s+u*r+c*i-f*a)*2/g,n[1]=(c*s+u*a+f*r-o*i)*2/g,n[2]=(f*s+u*i+o*a-c*r)*2/g):(n[0]=(o*s+u*r+c*i-f*a)*2,n[1]=(c*s+u*a+f*r-o*i)*2,n[2]=(f*s+u*i+o*a-c*r)*2),Su(t,e,n),t}function vy(t,e){return t[0]=e[12],t[1]=e[13],t[2]=e[14],t}function Cu(t,e){var n=e[0],r=e[1],a=e[2],i=e[4],s=e[5],o=e[6],c=e[8],f=e[9],u=e[10];return t[0]=Math.hypot(n,r,a),t[1]=Math.hypot(i,s,o),t[2]=Math.hypot(c,f,u),t}function dy(t,e){var n=new Se(3);Cu(n,e);var r=1/n[0],a=1/n[1],i=1/n[2],s=e[0]*r,o=e[1]*a,c=e[2]*i,f=e[4]*r,u=e[5]*a,g=e[6]*i,l=e[8]*r,h=e[9]*a,y=e[10]*i,p=s+u+y,v=0;return p>0?(v=Math.sqrt(p+1)*2,t[3]=.25*v,t[0]=(g-h)/v,t[1]=(l-c)/v,t[2]=(o-f)/v):s>u&&s>y?(v=Math.sqrt(1+s-u-y)*2,t[3]=(g-h)/v,t[0]=.25*v,t[1]=(o+f)/v,t[2]=(l+c)/v):u>y?(v=Math.sqrt(1+u-s-y)*2,t[3]=(l-c)/v,t[0]=(o+f)/v,t[1]=.25*v,t[2]=(g+h)/v):(v=Math.sqrt(1+y-s-u)*2,t[3]=(o-f)/v,t[0]=(l+c)/v,t[1]=(g+h)/v,t[2]=.25*v),t}function Ty(t,e,n,r){var a=e[0],i=e[1],s=e[2],o=e[3],c=a+a,f=i+i,u=s+s,g=a*c,l=a*f,h=a*u,y=i*f,p=i*u,v=s*u,x=o*c,S=o*f,T=o*u,d=r[0],C=r[1],w=r[2];return t[0]=(1-(y+v))*d,t[1]=(l+T)*d,t[2]=(h-S)*d,t[3]=0,t[4]=(l-T)*C,t[5]=(1-(g+v))*C,t[6]=(p+x)*C,t[7]=0,t[8]=(h+S)*w,t[9]=(p-x)*w,t[10]=(1-(g+y))*w,t[11]=0,t[12]=n[0],t[13]=n[1],t[14]=n[2],t[15]=1,t}function xy(t,e,n,r,a){var i=e[0],s=e[1],o=e[2],c=e[3],f=i+i,u=s+s,g=o+o,l=i*f,h=i*u,y=i*g,p=s*u,v=s*g,x=o*g,S=c*f,T=c*u,d=c*g,C=r[0],w=r[1],D=r[2],m=a[0],M=a[1],R=a[2],E=(1-(p+x))*C,V=(h+d)*C,N=(y-T)*C,_=(h-d)*w,L=(1-(l+x))*w,B=(v+S)*w,b=(y+T)*D,G=(v-S)*D,U=(1-(l+p))*D;return t[0]=E,t[1]=V,t[2]=N,t[3]=0,t[4]=_,t[5]=L,t[6]=B,t[7]=0,t[8]=b,t[9]=G,t[10]=U,t[11]=0,t[12]=n[0]+m-(E*m+_*M+b*R),t[13]=n[1]+M-(V*m+L*M+G*R),t[14]=n[2]+R-(N*m+B*M+U*R),t[15]=1,t}function yy(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=n+n,o=r+r,c=a+a,f=n*s,u=r*s,g=r*o,l=a*s,h=a*o,y=a*c,p=i*s,v=i*o,x=i*c;return t[0]=1-g-y,t[1]=u+x,t[2]=l-v,t[3]=0,t[4]=u-x,t[5]=1-f-y,t[6]=h+p,t[7]=0,t[8]=l+v,t[9]=h-p,t[10]=1-f-g,t[11]=0,t[12]=0,t[13]=0,t[14]=0,t[15]=1,t}function my(t,e,n,r,a,i,s){var o=1/(n-e),c=1/(a-r),f=1/(i-s);return t[0]=i*2*o,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=i*2*c,t[6]=0,t[7]=0,t[8]=(n+e)*o,t[9]=(a+r)*c,t[10]=(s+i)*f,t[11]=-1,t[12]=0,t[13]=0,t[14]=s*i*2*f,t[15]=0,t}function wu(t,e,n,r,a){var i=1/Math.tan(e/2),s;return t[0]=i/n,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=i,t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[11]=-1,t[12]=0,t[13]=0,t[15]=0,a!=null&&a!==1/0?(s=1/(r-a),t[10]=(a+r)*s,t[14]=2*a*r*s):(t[10]=-1,t[14]=-2*r),t}var Sy=wu;function Cy(t,e,n,r,a){var i=1/Math.tan(e/2),s;return t[0]=i/n,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=i,t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[11]=-1,t[12]=0,t[13]=0,t[15]=0,a!=null&&a!==1/0?(s=1/(r-a),t[10]=a*s,t[14]=a*r*s):(t[10]=-1,t[14]=-r),t}function wy(t,e,n,r){var a=Math.tan(e.upDegrees*Math.PI/180),i=Math.tan(e.downDegrees*Math.PI/180),s=Math.tan(e.leftDegrees*Math.PI/180),o=Math.tan(e.rightDegrees*Math.PI/180),c=2/(s+o),f=2/(a+i);return t[0]=c,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=f,t[6]=0,t[7]=0,t[8]=-((s-o)*c*.5),t[9]=(a-i)*f*.5,t[10]=r/(n-r),t[11]=-1,t[12]=0,t[13]=0,t[14]=r*n/(n-r),t[15]=0,t}function Ou(t,e,n,r,a,i,s){var o=1/(e-n),c=1/(r-a),f=1/(i-s);return t[0]=-2*o,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=-2*c,t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[10]=2*f,t[11]=0,t[12]=(e+n)*o,t[13]=(a+r)*c,t[14]=(s+i)*f,t[15]=1,t}var Oy=Ou;function Ry(t,e,n,r,a,i,s){var o=1/(e-n),c=1/(r-a),f=1/(i-s);return t[0]=-2*o,t[1]=0,t[2]=0,t[3]=0,t[4]=0,t[5]=-2*c,t[6]=0,t[7]=0,t[8]=0,t[9]=0,t[10]=f,t[11]=0,t[12]=(e+n)*o,t[13]=(a+r)*c,t[14]=i*f,t[15]=1,t}function My(t,e,n,r){var a,i,s,o,c,f,u,g,l,h,y=e[0],p=e[1],v=e[2],x=r[0],S=r[1],T=r[2],d=n[0],C=n[1],w=n[2];return Math.abs(y-d)<ne&&Math.abs(p-C)<ne&&Math.abs(v-w)<ne?yu(t):(u=y-d,g=p-C,l=v-w,h=1/Math.hypot(u,g,l),u*=h,g*=h,l*=h,a=S*l-T*g,i=T*u-x*l,s=x*g-S*u,h=Math.hypot(a,i,s),h?(h=1/h,a*=h,i*=h,s*=h):(a=0,i=0,s=0),o=g*s-l*i,c=l*a-u*s,f=u*i-g*a,h=Math.hypot(o,c,f),h?(h=1/h,o*=h,c*=h,f*=h):(o=0,c=0,f=0),t[0]=a,t[1]=o,t[2]=u,t[3]=0,t[4]=i,t[5]=c,t[6]=g,t[7]=0,t[8]=s,t[9]=f,t[10]=l,t[11]=0,t[12]=-(a*y+i*p+s*v),t[13]=-(o*y+c*p+f*v),t[14]=-(u*y+g*p+l*v),t[15]=1,t)}function Ey(t,e,n,r){var a=e[0],i=e[1],s=e[2],o=r[0],c=r[1],f=r[2],u=a-n[0],g=i-n[1],l=s-n[2],h=u*u+g*g+l*l;h>0&&(h=1/Math.sqrt(h),u*=h,g*=h,l*=h);var y=c*l-f*g,p=f*u-o*l,v=o*g-c*u;return h=y*y+p*p+v*v,h>0&&(h=1/Math.sqrt(h),y*=h,p*=h,v*=h),t[0]=y,t[1]=p,t[2]=v,t[3]=0,t[4]=g*v-l*p,t[5]=l*y-u*v,t[6]=u*p-g*y,t[7]=0,t[8]=u,t[9]=g,t[10]=l,t[11]=0,t[12]=a,t[13]=i,t[14]=s,t[15]=1,t}function Dy(t){return"mat4("+t[0]+", "+t[1]+", "+t[2]+", "+t[3]+", "+t[4]+", "+t[5]+", "+t[6]+", "+t[7]+", "+t[8]+", "+t[9]+", "+t[10]+", "+t[11]+", "+t[12]+", "+t[13]+", "+t[14]+", "+t[15]+")"}function Vy(t){return Math.hypot(t[0],t[1],t[2],t[3],t[4],t[5],t[6],t[7],t[8],t[9],t[10],t[11],t[12],t[13],t[14],t[15])}function Ly(t,e,n){return t[0]=e[0]+n[0],t[1]=e[1]+n[1],t[2]=e[2]+n[2],t[3]=e[3]+n[3],t[4]=e[4]+n[4],t[5]=e[5]+n[5],t[6]=e[6]+n[6],t[7]=e[7]+n[7],t[8]=e[8]+n[8],t[9]=e[9]+n[9],t[10]=e[10]+n[10],t[11]=e[11]+n[11],t[12]=e[12]+n[12],t[13]=e[13]+n[13],t[14]=e[14]+n[14],t[15]=e[15]+n[15],t}function Ru(t,e,n){return t[0]=e[0]-n[0],t[1]=e[1]-n[1],t[2]=e[2]-n[2],t[3]=e[3]-n[3],t[4]=e[4]-n[4],t[5]=e[5]-n[5],t[6]=e[6]-n[6],t[7]=e[7]-n[7],t[8]=e[8]-n[8],t[9]=e[9]-n[9],t[10]=e[10]-n[10],t[11]=e[11]-n[11],t[12]=e[12]-n[12],t[13]=e[13]-n[13],t[14]=e[14]-n[14],t[15]=e[15]-n[15],t}function _y(t,e,n){return t[0]=e[0]*n,t[1]=e[1]*n,t[2]=e[2]*n,t[3]=e[3]*n,t[4]=e[4]*n,t[5]=e[5]*n,t[6]=e[6]*n,t[7]=e[7]*n,t[8]=e[8]*n,t[9]=e[9]*n,t[10]=e[10]*n,t[11]=e[11]*n,t[12]=e[12]*n,t[13]=e[13]*n,t[14]=e[14]*n,t[15]=e[15]*n,t}function Fy(t,e,n,r){return t[0]=e[0]+n[0]*r,t[1]=e[1]+n[1]*r,t[2]=e[2]+n[2]*r,t[3]=e[3]+n[3]*r,t[4]=e[4]+n[4]*r,t[5]=e[5]+n[5]*r,t[6]=e[6]+n[6]*r,t[7]=e[7]+n[7]*r,t[8]=e[8]+n[8]*r,t[9]=e[9]+n[9]*r,t[10]=e[10]+n[10]*r,t[11]=e[11]+n[11]*r,t[12]=e[12]+n[12]*r,t[13]=e[13]+n[13]*r,t[14]=e[14]+n[14]*r,t[15]=e[15]+n[15]*r,t}function Ny(t,e){return t[0]===e[0]&&t[1]===e[1]&&t[2]===e[2]&&t[3]===e[3]&&t[4]===e[4]&&t[5]===e[5]&&t[6]===e[6]&&t[7]===e[7]&&t[8]===e[8]&&t[9]===e[9]&&t[10]===e[10]&&t[11]===e[11]&&t[12]===e[12]&&t[13]===e[13]&&t[14]===e[14]&&t[15]===e[15]}function By(t,e){var n=t[0],r=t[1],a=t[2],i=t[3],s=t[4],o=t[5],c=t[6],f=t[7],u=t[8],g=t[9],l=t[10],h=t[11],y=t[12],p=t[13],v=t[14],x=t[15],S=e[0],T=e[1],d=e[2],C=e[3],w=e[4],D=e[5],m=e[6],M=e[7],R=e[8],E=e[9],V=e[10],N=e[11],_=e[12],L=e[13],B=e[14],b=e[15];return Math.abs(n-S)<=ne*Math.max(1,Math.abs(n),Math.abs(S))&&Math.abs(r-T)<=ne*Math.max(1,Math.abs(r),Math.abs(T))&&Math.abs(a-d)<=ne*Math.max(1,Math.abs(a),Math.abs(d))&&Math.abs(i-C)<=ne*Math.max(1,Math.abs(i),Math.abs(C))&&Math.abs(s-w)<=ne*Math.max(1,Math.abs(s),Math.abs(w))&&Math.abs(o-D)<=ne*Math.max(1,Math.abs(o),Math.abs(D))&&Math.abs(c-m)<=ne*Math.max(1,Math.abs(c),Math.abs(m))&&Math.abs(f-M)<=ne*Math.max(1,Math.abs(f),Math.abs(M))&&Math.abs(u-R)<=ne*Math.max(1,Math.abs(u),Math.abs(R))&&Math.abs(g-E)<=ne*Math.max(1,Math.abs(g),Math.abs(E))&&Math.abs(l-V)<=ne*Math.max(1,Math.abs(l),Math.abs(V))&&Math.abs(h-N)<=ne*Math.max(1,Math.abs(h),Math.abs(N))&&Math.abs(y-_)<=ne*Math.max(1,Math.abs(y),Math.abs(_))&&Math.abs(p-L)<=ne*Math.max(1,Math.abs(p),Math.abs(L))&&Math.abs(v-B)<=ne*Math.max(1,Math.abs(v),Math.abs(B))&&Math.abs(x-b)<=ne*Math.max(1,Math.abs(x),Math.abs(b))}var Gy=mu,Uy=Ru;var _e={};or(_e,{add:()=>rm,calculateW:()=>$1,clone:()=>J1,conjugate:()=>q1,copy:()=>tm,create:()=>oo,dot:()=>ju,equals:()=>fm,exactEquals:()=>cm,exp:()=>Au,fromEuler:()=>Z1,fromMat3:()=>Hu,fromValues:()=>em,getAngle:()=>P1,getAxisAngle:()=>A1,identity:()=>W1,invert:()=>Y1,len:()=>sm,length:()=>$u,lerp:()=>im,ln:()=>Pu,mul:()=>am,multiply:()=>Wu,normalize:()=>co,pow:()=>K1,random:()=>X1,rotateX:()=>H1,rotateY:()=>I1,rotateZ:()=>j1,rotationTo:()=>um,scale:()=>Iu,set:()=>nm,setAxes:()=>gm,setAxisAngle:()=>zu,slerp:()=>ti,sqlerp:()=>lm,sqrLen:()=>om,squaredLength:()=>Ku,str:()=>Q1});var W={};or(W,{add:()=>Wy,angle:()=>s1,bezier:()=>Qy,ceil:()=>Ay,clone:()=>ky,copy:()=>by,create:()=>qa,cross:()=>Jr,dist:()=>h1,distance:()=>Lu,div:()=>p1,divide:()=>Vu,dot:()=>Qa,equals:()=>u1,exactEquals:()=>f1,floor:()=>Py,forEach:()=>T1,fromValues:()=>Za,hermite:()=>Zy,inverse:()=>Yy,len:()=>Ys,length:()=>Mu,lerp:()=>qy,max:()=>Iy,min:()=>Hy,mul:()=>g1,multiply:()=>Du,negate:()=>Xy,normalize:()=>Xs,random:()=>Jy,rotateX:()=>r1,rotateY:()=>a1,rotateZ:()=>i1,round:()=>jy,scale:()=>$y,scaleAndAdd:()=>Ky,set:()=>zy,sqrDist:()=>v1,sqrLen:()=>d1,squaredDistance:()=>_u,squaredLength:()=>Fu,str:()=>c1,sub:()=>l1,subtract:()=>Eu,transformMat3:()=>t1,transformMat4:()=>e1,transformQuat:()=>n1,zero:()=>o1});function qa(){var t=new Se(3);return Se!=Float32Array&&(t[0]=0,t[1]=0,t[2]=0),t}function ky(t){var e=new Se(3);return e[0]=t[0],e[1]=t[1],e[2]=t[2],e}function Mu(t){var e=t[0],n=t[1],r=t[2];return Math.hypot(e,n,r)}function Za(t,e,n){var r=new Se(3);return r[0]=t,r[1]=e,r[2]=n,r}function by(t,e){return t[0]=e[0],t[1]=e[1],t[2]=e[2],t}function zy(t,e,n,r){return t[0]=e,t[1]=n,t[2]=r,t}function Wy(t,e,n){return t[0]=e[0]+n[0],t[1]=e[1]+n[1],t[2]=e[2]+n[2],t}function Eu(t,e,n){return t[0]=e[0]-n[0],t[1]=e[1]-n[1],t[2]=e[2]-n[2],t}function Du(t,e,n){return t[0]=e[0]*n[0],t[1]=e[1]*n[1],t[2]=e[2]*n[2],t}function Vu(t,e,n){return t[0]=e[0]/n[0],t[1]=e[1]/n[1],t[2]=e[2]/n[2],t}function Ay(t,e){return t[0]=Math.ceil(e[0]),t[1]=Math.ceil(e[1]),t[2]=Math.ceil(e[2]),t}function Py(t,e){return t[0]=Math.floor(e[0]),t[1]=Math.floor(e[1]),t[2]=Math.floor(e[2]),t}function Hy(t,e,n){return t[0]=Math.min(e[0],n[0]),t[1]=Math.min(e[1],n[1]),t[2]=Math.min(e[2],n[2]),t}function Iy(t,e,n){return t[0]=Math.max(e[0],n[0]),t[1]=Math.max(e[1],n[1]),t[2]=Math.max(e[2],n[2]),t}function jy(t,e){return t[0]=Math.round(e[0]),t[1]=Math.round(e[1]),t[2]=Math.round(e[2]),t}function $y(t,e,n){return t[0]=e[0]*n,t[1]=e[1]*n,t[2]=e[2]*n,t}function Ky(t,e,n,r){return t[0]=e[0]+n[0]*r,t[1]=e[1]+n[1]*r,t[2]=e[2]+n[2]*r,t}function Lu(t,e){var n=e[0]-t[0],r=e[1]-t[1],a=e[2]-t[2];return Math.hypot(n,r,a)}function _u(t,e){var n=e[0]-t[0],r=e[1]-t[1],a=e[2]-t[2];return n*n+r*r+a*a}function Fu(t){var e=t[0],n=t[1],r=t[2];return e*e+n*n+r*r}function Xy(t,e){return t[0]=-e[0],t[1]=-e[1],t[2]=-e[2],t}function Yy(t,e){return t[0]=1/e[0],t[1]=1/e[1],t[2]=1/e[2],t}function Xs(t,e){var n=e[0],r=e[1],a=e[2],i=n*n+r*r+a*a;return i>0&&(i=1/Math.sqrt(i)),t[0]=e[0]*i,t[1]=e[1]*i,t[2]=e[2]*i,t}function Qa(t,e){return t[0]*e[0]+t[1]*e[1]+t[2]*e[2]}function Jr(t,e,n){var r=e[0],a=e[1],i=e[2],s=n[0],o=n[1],c=n[2];return t[0]=a*c-i*o,t[1]=i*s-r*c,t[2]=r*o-a*s,t}function qy(t,e,n,r){var a=e[0],i=e[1],s=e[2];return t[0]=a+r*(n[0]-a),t[1]=i+r*(n[1]-i),t[2]=s+r*(n[2]-s),t}function Zy(t,e,n,r,a,i){var s=i*i,o=s*(2*i-3)+1,c=s*(i-2)+i,f=s*(i-1),u=s*(3-2*i);return t[0]=e[0]*o+n[0]*c+r[0]*f+a[0]*u,t[1]=e[1]*o+n[1]*c+r[1]*f+a[1]*u,t[2]=e[2]*o+n[2]*c+r[2]*f+a[2]*u,t}function Qy(t,e,n,r,a,i){var s=1-i,o=s*s,c=i*i,f=o*s,u=3*i*o,g=3*c*s,l=c*i;return t[0]=e[0]*f+n[0]*u+r[0]*g+a[0]*l,t[1]=e[1]*f+n[1]*u+r[1]*g+a[1]*l,t[2]=e[2]*f+n[2]*u+r[2]*g+a[2]*l,t}function Jy(t,e){e=e||1;var n=lt()*2*Math.PI,r=lt()*2-1,a=Math.sqrt(1-r*r)*e;return t[0]=Math.cos(n)*a,t[1]=Math.sin(n)*a,t[2]=r*e,t}function e1(t,e,n){var r=e[0],a=e[1],i=e[2],s=n[3]*r+n[7]*a+n[11]*i+n[15];return s=s||1,t[0]=(n[0]*r+n[4]*a+n[8]*i+n[12])/s,t[1]=(n[1]*r+n[5]*a+n[9]*i+n[13])/s,t[2]=(n[2]*r+n[6]*a+n[10]*i+n[14])/s,t}function t1(t,e,n){var r=e[0],a=e[1],i=e[2];return t[0]=r*n[0]+a*n[3]+i*n[6],t[1]=r*n[1]+a*n[4]+i*n[7],t[2]=r*n[2]+a*n[5]+i*n[8],t}function n1(t,e,n){var r=n[0],a=n[1],i=n[2],s=n[3],o=e[0],c=e[1],f=e[2],u=a*f-i*c,g=i*o-r*f,l=r*c-a*o,h=a*l-i*g,y=i*u-r*l,p=r*g-a*u,v=s*2;return u*=v,g*=v,l*=v,h*=2,y*=2,p*=2,t[0]=o+u+h,t[1]=c+g+y,t[2]=f+l+p,t}function r1(t,e,n,r){var a=[],i=[];return a[0]=e[0]-n[0],a[1]=e[1]-n[1],a[2]=e[2]-n[2],i[0]=a[0],i[1]=a[1]*Math.cos(r)-a[2]*Math.sin(r),i[2]=a[1]*Math.sin(r)+a[2]*Math.cos(r),t[0]=i[0]+n[0],t[1]=i[1]+n[1],t[2]=i[2]+n[2],t}function a1(t,e,n,r){var a=[],i=[];return a[0]=e[0]-n[0],a[1]=e[1]-n[1],a[2]=e[2]-n[2],i[0]=a[2]*Math.sin(r)+a[0]*Math.cos(r),i[1]=a[1],i[2]=a[2]*Math.cos(r)-a[0]*Math.sin(r),t[0]=i[0]+n[0],t[1]=i[1]+n[1],t[2]=i[2]+n[2],t}function i1(t,e,n,r){var a=[],i=[];return a[0]=e[0]-n[0],a[1]=e[1]-n[1],a[2]=e[2]-n[2],i[0]=a[0]*Math.cos(r)-a[1]*Math.sin(r),i[1]=a[0]*Math.sin(r)+a[1]*Math.cos(r),i[2]=a[2],t[0]=i[0]+n[0],t[1]=i[1]+n[1],t[2]=i[2]+n[2],t}function s1(t,e){var n=t[0],r=t[1],a=t[2],i=e[0],s=e[1],o=e[2],c=Math.sqrt(n*n+r*r+a*a),f=Math.sqrt(i*i+s*s+o*o),u=c*f,g=u&&Qa(t,e)/u;return Math.acos(Math.min(Math.max(g,-1),1))}function o1(t){return t[0]=0,t[1]=0,t[2]=0,t}function c1(t){return"vec3("+t[0]+", "+t[1]+", "+t[2]+")"}function f1(t,e){return t[0]===e[0]&&t[1]===e[1]&&t[2]===e[2]}function u1(t,e){var n=t[0],r=t[1],a=t[2],i=e[0],s=e[1],o=e[2];return Math.abs(n-i)<=ne*Math.max(1,Math.abs(n),Math.abs(i))&&Math.abs(r-s)<=ne*Math.max(1,Math.abs(r),Math.abs(s))&&Math.abs(a-o)<=ne*Math.max(1,Math.abs(a),Math.abs(o))}var l1=Eu,g1=Du,p1=Vu,h1=Lu,v1=_u,Ys=Mu,d1=Fu,T1=(function(){var t=qa();return function(e,n,r,a,i,s){var o,c;for(n||(n=3),r||(r=0),a?c=Math.min(a*n+r,e.length):c=e.length,o=r;o<c;o+=n)t[0]=e[o],t[1]=e[o+1],t[2]=e[o+2],i(t,t,s),e[o]=t[0],e[o+1]=t[1],e[o+2]=t[2];return e}})();var Tt={};or(Tt,{add:()=>eo,ceil:()=>x1,clone:()=>qs,copy:()=>Qs,create:()=>Nu,cross:()=>M1,dist:()=>G1,distance:()=>ku,div:()=>B1,divide:()=>Uu,dot:()=>ro,equals:()=>so,exactEquals:()=>io,floor:()=>y1,forEach:()=>z1,fromValues:()=>Zs,inverse:()=>R1,len:()=>k1,length:()=>Ja,lerp:()=>ao,max:()=>S1,min:()=>m1,mul:()=>N1,multiply:()=>Gu,negate:()=>O1,normalize:()=>no,random:()=>E1,round:()=>C1,scale:()=>to,scaleAndAdd:()=>w1,set:()=>Js,sqrDist:()=>U1,sqrLen:()=>b1,squaredDistance:()=>bu,squaredLength:()=>ei,str:()=>_1,sub:()=>F1,subtract:()=>Bu,transformMat4:()=>D1,transformQuat:()=>V1,zero:()=>L1});function Nu(){var t=new Se(4);return Se!=Float32Array&&(t[0]=0,t[1]=0,t[2]=0,t[3]=0),t}function qs(t){var e=new Se(4);return e[0]=t[0],e[1]=t[1],e[2]=t[2],e[3]=t[3],e}function Zs(t,e,n,r){var a=new Se(4);return a[0]=t,a[1]=e,a[2]=n,a[3]=r,a}function Qs(t,e){return t[0]=e[0],t[1]=e[1],t[2]=e[2],t[3]=e[3],t}function Js(t,e,n,r,a){return t[0]=e,t[1]=n,t[2]=r,t[3]=a,t}function eo(t,e,n){return t[0]=e[0]+n[0],t[1]=e[1]+n[1],t[2]=e[2]+n[2],t[3]=e[3]+n[3],t}function Bu(t,e,n){return t[0]=e[0]-n[0],t[1]=e[1]-n[1],t[2]=e[2]-n[2],t[3]=e[3]-n[3],t}function Gu(t,e,n){return t[0]=e[0]*n[0],t[1]=e[1]*n[1],t[2]=e[2]*n[2],t[3]=e[3]*n[3],t}function Uu(t,e,n){return t[0]=e[0]/n[0],t[1]=e[1]/n[1],t[2]=e[2]/n[2],t[3]=e[3]/n[3],t}function x1(t,e){return t[0]=Math.ceil(e[0]),t[1]=Math.ceil(e[1]),t[2]=Math.ceil(e[2]),t[3]=Math.ceil(e[3]),t}function y1(t,e){return t[0]=Math.floor(e[0]),t[1]=Math.floor(e[1]),t[2]=Math.floor(e[2]),t[3]=Math.floor(e[3]),t}function m1(t,e,n){return t[0]=Math.min(e[0],n[0]),t[1]=Math.min(e[1],n[1]),t[2]=Math.min(e[2],n[2]),t[3]=Math.min(e[3],n[3]),t}function S1(t,e,n){return t[0]=Math.max(e[0],n[0]),t[1]=Math.max(e[1],n[1]),t[2]=Math.max(e[2],n[2]),t[3]=Math.max(e[3],n[3]),t}function C1(t,e){return t[0]=Math.round(e[0]),t[1]=Math.round(e[1]),t[2]=Math.round(e[2]),t[3]=Math.round(e[3]),t}function to(t,e,n){return t[0]=e[0]*n,t[1]=e[1]*n,t[2]=e[2]*n,t[3]=e[3]*n,t}function w1(t,e,n,r){return t[0]=e[0]+n[0]*r,t[1]=e[1]+n[1]*r,t[2]=e[2]+n[2]*r,t[3]=e[3]+n[3]*r,t}function ku(t,e){var n=e[0]-t[0],r=e[1]-t[1],a=e[2]-t[2],i=e[3]-t[3];return Math.hypot(n,r,a,i)}function bu(t,e){var n=e[0]-t[0],r=e[1]-t[1],a=e[2]-t[2],i=e[3]-t[3];return n*n+r*r+a*a+i*i}function Ja(t){var e=t[0],n=t[1],r=t[2],a=t[3];return Math.hypot(e,n,r,a)}function ei(t){var e=t[0],n=t[1],r=t[2],a=t[3];return e*e+n*n+r*r+a*a}function O1(t,e){return t[0]=-e[0],t[1]=-e[1],t[2]=-e[2],t[3]=-e[3],t}function R1(t,e){return t[0]=1/e[0],t[1]=1/e[1],t[2]=1/e[2],t[3]=1/e[3],t}function no(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=n*n+r*r+a*a+i*i;return s>0&&(s=1/Math.sqrt(s)),t[0]=n*s,t[1]=r*s,t[2]=a*s,t[3]=i*s,t}function ro(t,e){return t[0]*e[0]+t[1]*e[1]+t[2]*e[2]+t[3]*e[3]}function M1(t,e,n,r){var a=n[0]*r[1]-n[1]*r[0],i=n[0]*r[2]-n[2]*r[0],s=n[0]*r[3]-n[3]*r[0],o=n[1]*r[2]-n[2]*r[1],c=n[1]*r[3]-n[3]*r[1],f=n[2]*r[3]-n[3]*r[2],u=e[0],g=e[1],l=e[2],h=e[3];return t[0]=g*f-l*c+h*o,t[1]=-(u*f)+l*s-h*i,t[2]=u*c-g*s+h*a,t[3]=-(u*o)+g*i-l*a,t}function ao(t,e,n,r){var a=e[0],i=e[1],s=e[2],o=e[3];return t[0]=a+r*(n[0]-a),t[1]=i+r*(n[1]-i),t[2]=s+r*(n[2]-s),t[3]=o+r*(n[3]-o),t}function E1(t,e){e=e||1;var n,r,a,i,s,o;do n=lt()*2-1,r=lt()*2-1,s=n*n+r*r;while(s>=1);do a=lt()*2-1,i=lt()*2-1,o=a*a+i*i;while(o>=1);var c=Math.sqrt((1-s)/o);return t[0]=e*n,t[1]=e*r,t[2]=e*a*c,t[3]=e*i*c,t}function D1(t,e,n){var r=e[0],a=e[1],i=e[2],s=e[3];return t[0]=n[0]*r+n[4]*a+n[8]*i+n[12]*s,t[1]=n[1]*r+n[5]*a+n[9]*i+n[13]*s,t[2]=n[2]*r+n[6]*a+n[10]*i+n[14]*s,t[3]=n[3]*r+n[7]*a+n[11]*i+n[15]*s,t}function V1(t,e,n){var r=e[0],a=e[1],i=e[2],s=n[0],o=n[1],c=n[2],f=n[3],u=f*r+o*i-c*a,g=f*a+c*r-s*i,l=f*i+s*a-o*r,h=-s*r-o*a-c*i;return t[0]=u*f+h*-s+g*-c-l*-o,t[1]=g*f+h*-o+l*-s-u*-c,t[2]=l*f+h*-c+u*-o-g*-s,t[3]=e[3],t}function L1(t){return t[0]=0,t[1]=0,t[2]=0,t[3]=0,t}function _1(t){return"vec4("+t[0]+", "+t[1]+", "+t[2]+", "+t[3]+")"}function io(t,e){return t[0]===e[0]&&t[1]===e[1]&&t[2]===e[2]&&t[3]===e[3]}function so(t,e){var n=t[0],r=t[1],a=t[2],i=t[3],s=e[0],o=e[1],c=e[2],f=e[3];return Math.abs(n-s)<=ne*Math.max(1,Math.abs(n),Math.abs(s))&&Math.abs(r-o)<=ne*Math.max(1,Math.abs(r),Math.abs(o))&&Math.abs(a-c)<=ne*Math.max(1,Math.abs(a),Math.abs(c))&&Math.abs(i-f)<=ne*Math.max(1,Math.abs(i),Math.abs(f))}var F1=Bu,N1=Gu,B1=Uu,G1=ku,U1=bu,k1=Ja,b1=ei,z1=(function(){var t=Nu();return function(e,n,r,a,i,s){var o,c;for(n||(n=4),r||(r=0),a?c=Math.min(a*n+r,e.length):c=e.length,o=r;o<c;o+=n)t[0]=e[o],t[1]=e[o+1],t[2]=e[o+2],t[3]=e[o+3],i(t,t,s),e[o]=t[0],e[o+1]=t[1],e[o+2]=t[2],e[o+3]=t[3];return e}})();function oo(){var t=new Se(4);return Se!=Float32Array&&(t[0]=0,t[1]=0,t[2]=0),t[3]=1,t}function W1(t){return t[0]=0,t[1]=0,t[2]=0,t[3]=1,t}function zu(t,e,n){n=n*.5;var r=Math.sin(n);return t[0]=r*e[0],t[1]=r*e[1],t[2]=r*e[2],t[3]=Math.cos(n),t}function A1(t,e){var n=Math.acos(e[3])*2,r=Math.sin(n/2);return r>ne?(t[0]=e[0]/r,t[1]=e[1]/r,t[2]=e[2]/r):(t[0]=1,t[1]=0,t[2]=0),n}function P1(t,e){var n=ju(t,e);return Math.acos(2*n*n-1)}function Wu(t,e,n){var r=e[0],a=e[1],i=e[2],s=e[3],o=n[0],c=n[1],f=n[2],u=n[3];return t[0]=r*u+s*o+a*f-i*c,t[1]=a*u+s*c+i*o-r*f,t[2]=i*u+s*f+r*c-a*o,t[3]=s*u-r*o-a*c-i*f,t}function H1(t,e,n){n*=.5;var r=e[0],a=e[1],i=e[2],s=e[3],o=Math.sin(n),c=Math.cos(n);return t[0]=r*c+s*o,t[1]=a*c+i*o,t[2]=i*c-a*o,t[3]=s*c-r*o,t}function I1(t,e,n){n*=.5;var r=e[0],a=e[1],i=e[2],s=e[3],o=Math.sin(n),c=Math.cos(n);return t[0]=r*c-i*o,t[1]=a*c+s*o,t[2]=i*c+r*o,t[3]=s*c-a*o,t}function j1(t,e,n){n*=.5;var r=e[0],a=e[1],i=e[2],s=e[3],o=Math.sin(n),c=Math.cos(n);return t[0]=r*c+a*o,t[1]=a*c-r*o,t[2]=i*c+s*o,t[3]=s*c-i*o,t}function $1(t,e){var n=e[0],r=e[1],a=e[2];return t[0]=n,t[1]=r,t[2]=a,t[3]=Math.sqrt(Math.abs(1-n*n-r*r-a*a)),t}function Au(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=Math.sqrt(n*n+r*r+a*a),o=Math.exp(i),c=s>0?o*Math.sin(s)/s:0;return t[0]=n*c,t[1]=r*c,t[2]=a*c,t[3]=o*Math.cos(s),t}function Pu(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=Math.sqrt(n*n+r*r+a*a),o=s>0?Math.atan2(s,i)/s:0;return t[0]=n*o,t[1]=r*o,t[2]=a*o,t[3]=.5*Math.log(n*n+r*r+a*a+i*i),t}function K1(t,e,n){return Pu(t,e),Iu(t,t,n),Au(t,t),t}function ti(t,e,n,r){var a=e[0],i=e[1],s=e[2],o=e[3],c=n[0],f=n[1],u=n[2],g=n[3],l,h,y,p,v;return h=a*c+i*f+s*u+o*g,h<0&&(h=-h,c=-c,f=-f,u=-u,g=-g),1-h>ne?(l=Math.acos(h),y=Math.sin(l),p=Math.sin((1-r)*l)/y,v=Math.sin(r*l)/y):(p=1-r,v=r),t[0]=p*a+v*c,t[1]=p*i+v*f,t[2]=p*s+v*u,t[3]=p*o+v*g,t}function X1(t){var e=lt(),n=lt(),r=lt(),a=Math.sqrt(1-e),i=Math.sqrt(e);return t[0]=a*Math.sin(2*Math.PI*n),t[1]=a*Math.cos(2*Math.PI*n),t[2]=i*Math.sin(2*Math.PI*r),t[3]=i*Math.cos(2*Math.PI*r),t}function Y1(t,e){var n=e[0],r=e[1],a=e[2],i=e[3],s=n*n+r*r+a*a+i*i,o=s?1/s:0;return t[0]=-n*o,t[1]=-r*o,t[2]=-a*o,t[3]=i*o,t}function q1(t,e){return t[0]=-e[0],t[1]=-e[1],t[2]=-e[2],t[3]=e[3],t}function Hu(t,e){var n=e[0]+e[4]+e[8],r;if(n>0)r=Math.sqrt(n+1),t[3]=.5*r,r=.5/r,t[0]=(e[5]-e[7])*r,t[1]=(e[6]-e[2])*r,t[2]=(e[1]-e[3])*r;else{var a=0;e[4]>e[0]&&(a=1),e[8]>e[a*3+a]&&(a=2);var i=(a+1)%3,s=(a+2)%3;r=Math.sqrt(e[a*3+a]-e[i*3+i]-e[s*3+s]+1),t[a]=.5*r,r=.5/r,t[3]=(e[i*3+s]-e[s*3+i])*r,t[i]=(e[i*3+a]+e[a*3+i])*r,t[s]=(e[s*3+a]+e[a*3+s])*r}return t}function Z1(t,e,n,r){var a=.5*Math.PI/180;e*=a,n*=a,r*=a;var i=Math.sin(e),s=Math.cos(e),o=Math.sin(n),c=Math.cos(n),f=Math.sin(r),u=Math.cos(r);return t[0]=i*c*u-s*o*f,t[1]=s*o*u+i*c*f,t[2]=s*c*f-i*o*u,t[3]=s*c*u+i*o*f,t}function Q1(t){return"quat("+t[0]+", "+t[1]+", "+t[2]+", "+t[3]+")"}var J1=qs,em=Zs,tm=Qs,nm=Js,rm=eo,am=Wu,Iu=to,ju=ro,im=ao,$u=Ja,sm=$u,Ku=ei,om=Ku,co=no,cm=io,fm=so,um=(function(){var t=qa(),e=Za(1,0,0),n=Za(0,1,0);return function(r,a,i){var s=Qa(a,i);return s<-.999999?(Jr(t,e,a),Ys(t)<1e-6&&Jr(t,n,a),Xs(t,t),zu(r,t,Math.PI),r):s>.999999?(r[0]=0,r[1]=0,r[2]=0,r[3]=1,r):(Jr(t,a,i),r[0]=t[0],r[1]=t[1],r[2]=t[2],r[3]=1+s,co(r,r))}})(),lm=(function(){var t=oo(),e=oo();return function(n,r,a,i,s,o){return ti(t,r,s,o),ti(e,a,i,o),ti(n,t,e,2*o*(1-o)),n}})(),gm=(function(){var t=Ks();return function(e,n,r,a){return t[0]=r[0],t[3]=r[1],t[6]=r[2],t[1]=a[0],t[4]=a[1],t[7]=a[2],t[2]=-n[0],t[5]=-n[1],t[8]=-n[2],co(e,Hu(e,t))}})();function pm(t,e){e.classHierarchy.push("vtkOpenGLActor"),t.buildPass=n=>{if(n){e._openGLRenderWindow=t.getLastAncestorOfType("vtkOpenGLRenderWindow"),e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e.context=e._openGLRenderWindow.getContext(),t.prepareNodes(),t.addMissingNodes(e.renderable.getTextures()),t.addMissingNode(e.renderable.getMapper()),t.removeUnusedNodes(),e.ogltextures=null,e.activeTextures=null;for(let r=0;r<e.children.length;r++){let a=e.children[r];a.isA("vtkOpenGLTexture")?(e.ogltextures||(e.ogltextures=[]),e.ogltextures.push(a)):e.oglmapper=a}}},t.traverseZBufferPass=n=>{!e.renderable||!e.renderable.getNestedVisibility()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.oglmapper.traverse(n),t.apply(n,!1))},t.traverseOpaqueZBufferPass=n=>t.traverseOpaquePass(n),t.traverseOpaquePass=n=>{!e.renderable||!e.renderable.getNestedVisibility()||!e.renderable.getIsOpaque()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.oglmapper.traverse(n),t.apply(n,!1))},t.traverseTranslucentPass=n=>{!e.renderable||!e.renderable.getNestedVisibility()||e.renderable.getIsOpaque()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.oglmapper.traverse(n),t.apply(n,!1))},t.activateTextures=()=>{if(e.ogltextures){e.activeTextures=[];for(let n=0;n<e.ogltextures.length;n++){let r=e.ogltextures[n];r.render(),r.getHandle()&&e.activeTextures.push(r)}}},t.queryPass=(n,r)=>{if(n){if(!e.renderable||!e.renderable.getVisibility())return;e.renderable.getIsOpaque()?r.incrementOpaqueActorCount():r.incrementTranslucentActorCount()}},t.zBufferPass=(n,r)=>t.opaquePass(n,r),t.opaqueZBufferPass=(n,r)=>t.opaquePass(n,r),t.opaquePass=(n,r)=>{if(n)e.context.depthMask(!0),t.activateTextures();else{if(e.activeTextures)for(let a=0;a<e.activeTextures.length;a++)e.activeTextures[a].deactivate();e._openGLRenderWindow.disableCullFace()}},t.translucentPass=(n,r)=>{if(n)e.context.depthMask(e._openGLRenderer.getSelector()&&e.renderable.getNestedPickable()),t.activateTextures();else{if(e.activeTextures)for(let a=0;a<e.activeTextures.length;a++)e.activeTextures[a].deactivate();e._openGLRenderWindow.disableCullFace()}},t.getKeyMatrices=()=>(e.renderable.getMTime()>e.keyMatrixTime.getMTime()&&(e.renderable.computeMatrix(),F.copy(e.keyMatrices.mcwc,e.renderable.getMatrix()),F.transpose(e.keyMatrices.mcwc,e.keyMatrices.mcwc),e.renderable.getIsIdentity()?K.identity(e.keyMatrices.normalMatrix):(K.fromMat4(e.keyMatrices.normalMatrix,e.keyMatrices.mcwc),K.invert(e.keyMatrices.normalMatrix,e.keyMatrices.normalMatrix),K.transpose(e.keyMatrices.normalMatrix,e.keyMatrices.normalMatrix)),e.keyMatrixTime.modified()),e.keyMatrices)}var hm={context:null,keyMatrixTime:null,keyMatrices:null,activeTextures:null};function vm(t,e,n={}){Object.assign(e,hm,n),ue.extend(t,e,n),e.keyMatrixTime={},se(e.keyMatrixTime,{mtime:0}),e.keyMatrices={normalMatrix:K.identity(new Float64Array(9)),mcwc:F.identity(new Float64Array(16))},ie(t,e,["context"]),Oe(t,e,["activeTextures"]),pm(t,e)}var dm=J(vm);le("vtkActor",dm);function Tm(t,e){e.classHierarchy.push("vtkOpenGLActor2D"),t.buildPass=n=>{if(n){if(!e.renderable)return;e._openGLRenderWindow=t.getLastAncestorOfType("vtkOpenGLRenderWindow"),e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e.context=e._openGLRenderWindow.getContext(),t.prepareNodes(),t.addMissingNodes(e.renderable.getTextures()),t.addMissingNode(e.renderable.getMapper()),t.removeUnusedNodes(),e.ogltextures=null,e.activeTextures=null;for(let r=0;r<e.children.length;r++){let a=e.children[r];a.isA("vtkOpenGLTexture")?(e.ogltextures||(e.ogltextures=[]),e.ogltextures.push(a)):e.oglmapper=a}}},t.queryPass=(n,r)=>{if(n){if(!e.renderable||!e.renderable.getVisibility())return;r.incrementOverlayActorCount()}},t.traverseOpaquePass=n=>{!e.oglmapper||!e.renderable||!e.renderable.getNestedVisibility()||!e.renderable.getIsOpaque()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.oglmapper.traverse(n),t.apply(n,!1))},t.traverseTranslucentPass=n=>{!e.oglmapper||!e.renderable||!e.renderable.getNestedVisibility()||e.renderable.getIsOpaque()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.oglmapper.traverse(n),t.apply(n,!1))},t.traverseOverlayPass=n=>{!e.oglmapper||!e.renderable||!e.renderable.getNestedVisibility()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable||(t.apply(n,!0),e.oglmapper.traverse(n),t.apply(n,!1))},t.activateTextures=()=>{if(e.ogltextures){e.activeTextures=[];for(let n=0;n<e.ogltextures.length;n++){let r=e.ogltextures[n];r.render(),r.getHandle()&&e.activeTextures.push(r)}}},t.opaquePass=(n,r)=>{if(n)e.context.depthMask(!0),t.activateTextures();else{if(e.activeTextures)for(let a=0;a<e.activeTextures.length;a++)e.activeTextures[a].deactivate();e._openGLRenderWindow.disableCullFace()}},t.translucentPass=(n,r)=>{if(n)e.context.depthMask(!1),t.activateTextures();else{if(e.activeTextures)for(let a=0;a<e.activeTextures.length;a++)e.activeTextures[a].deactivate();e._openGLRenderWindow.disableCullFace()}},t.overlayPass=(n,r)=>{if(n)e.context.depthMask(!0),t.activateTextures();else{if(e.activeTextures)for(let a=0;a<e.activeTextures.length;a++)e.activeTextures[a].deactivate();e._openGLRenderWindow.disableCullFace()}}}var xm={context:null,activeTextures:null};function ym(t,e,n={}){Object.assign(e,xm,n),ue.extend(t,e,n),ie(t,e,["context"]),Oe(t,e,["activeTextures"]),Tm(t,e)}var mm=J(ym);le("vtkActor2D",mm);function Sm(t,e){e.classHierarchy.push("vtkOpenGLCamera"),t.buildPass=n=>{n&&(e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e._openGLRenderWindow=e._openGLRenderer.getParent(),e.context=e._openGLRenderWindow.getContext())},t.opaquePass=n=>{if(n){let r=e._openGLRenderer.getTiledSizeAndOrigin();e.context.viewport(r.lowerLeftU,r.lowerLeftV,r.usize,r.vsize),e.context.scissor(r.lowerLeftU,r.lowerLeftV,r.usize,r.vsize)}},t.translucentPass=t.opaquePass,t.zBufferPass=t.opaquePass,t.opaqueZBufferPass=t.opaquePass,t.volumePass=t.opaquePass,t.getKeyMatrices=n=>{if(n!==e.lastRenderer||e._openGLRenderWindow.getMTime()>e.keyMatrixTime.getMTime()||t.getMTime()>e.keyMatrixTime.getMTime()||n.getMTime()>e.keyMatrixTime.getMTime()||e.renderable.getMTime()>e.keyMatrixTime.getMTime()){e.renderable.getViewMatrix(e.keyMatrices.wcvc),K.fromMat4(e.keyMatrices.normalMatrix,e.keyMatrices.wcvc),K.invert(e.keyMatrices.normalMatrix,e.keyMatrices.normalMatrix),F.transpose(e.keyMatrices.wcvc,e.keyMatrices.wcvc);let r=e._openGLRenderer.getAspectRatio();F.copy(e.keyMatrices.vcpc,e.renderable.getProjectionMatrix(r,-1,1)),F.transpose(e.keyMatrices.vcpc,e.keyMatrices.vcpc),F.multiply(e.keyMatrices.wcpc,e.keyMatrices.vcpc,e.keyMatrices.wcvc),e.keyMatrixTime.modified(),e.lastRenderer=n}return e.keyMatrices}}var Cm={context:null,lastRenderer:null,keyMatrixTime:null,keyMatrices:null};function wm(t,e,n={}){Object.assign(e,Cm,n),ue.extend(t,e,n),e.keyMatrixTime={},se(e.keyMatrixTime),e.keyMatrices={normalMatrix:new Float64Array(9),vcpc:new Float64Array(16),wcvc:new Float64Array(16),wcpc:new Float64Array(16)},ie(t,e,["context","keyMatrixTime"]),Sm(t,e)}var Om=J(wm);le("vtkCamera",Om);function Rm(t,e){e.classHierarchy.push("vtkImplicitFunction"),t.functionValue=n=>{if(!e.transform)return t.evaluateFunction(n);let r=[];return e.transform.transformPoint(n,r),t.evaluateFunction(r)},t.evaluateFunction=n=>{O.vtkErrorMacro("not implemented")}}var Mm={};function Xu(t,e,n={}){Object.assign(e,Mm,n),O.obj(t,e),O.setGet(t,e,["transform"]),Rm(t,e)}var Em=O.newInstance(Xu,"vtkImplicitFunction"),Yu={newInstance:Em,extend:Xu};var fo=1e-6,qu="coincide",Zu="disjoint";function Dm(t,e,n){return t[0]*(n[0]-e[0])+t[1]*(n[1]-e[1])+t[2]*(n[2]-e[2])}function Qu(t,e,n){let r=n[0]*(t[0]-e[0])+n[1]*(t[1]-e[1])+n[2]*(t[2]-e[2]);return Math.abs(r)}function Ju(t,e,n,r){let a=[];Le(t,e,a);let i=q(n,a);r[0]=t[0]-i*n[0],r[1]=t[1]-i*n[1],r[2]=t[2]-i*n[2]}function el(t,e,n){let r=q(t,e),a=q(e,e);return a===0&&(a=1),n[0]=t[0]-r*e[0]/a,n[1]=t[1]-r*e[1]/a,n[2]=t[2]-r*e[2]/a,n}function tl(t,e,n,r){let a=[];Le(t,e,a);let i=q(n,a),s=q(n,n);s!==0?(r[0]=t[0]-i*n[0]/s,r[1]=t[1]-i*n[1]/s,r[2]=t[2]-i*n[2]/s):(r[0]=t[0],r[1]=t[1],r[2]=t[2])}function nl(t,e,n,r){let a={intersection:!1,betweenPoints:!1,t:Number.MAX_VALUE,x:[]},i=[],s=[];Le(e,t,i),Le(n,t,s);let o=q(r,s),c=q(r,i),f,u;return c<0?f=-c:f=c,o<0?u=-o*fo:u=o*fo,f<=u||(a.t=o/c,a.x[0]=t[0]+a.t*i[0],a.x[1]=t[1]+a.t*i[1],a.x[2]=t[2]+a.t*i[2],a.intersection=!0,a.betweenPoints=a.t>=0&&a.t<=1),a}function rl(t,e,n,r){let a={intersection:!1,l0:[],l1:[],error:null},i=[];Ue(e,r,i);let s=i.map(g=>Math.abs(g));if(s[0]+s[1]+s[2]<fo){let g=[];return Le(t,n,g),q(e,g)===0?a.error=qu:a.error=Zu,a}let o;s[0]>s[1]&&s[0]>s[2]?o="x":s[1]>s[2]?o="y":o="z";let c=[],f=-q(e,t),u=-q(r,n);switch(o){case"x":c[0]=0,c[1]=(u*e[2]-f*r[2])/i[0],c[2]=(f*r[1]-u*e[1])/i[0];break;case"y":c[0]=(f*r[2]-u*e[2])/i[1],c[1]=0,c[2]=(u*e[0]-f*r[0])/i[1];break;case"z":c[0]=(u*e[1]-f*r[1])/i[2],c[1]=(f*r[0]-u*e[0])/i[2],c[2]=0;break}return a.l0=c,$t(c,i,a.l1),a.intersection=!0,a}var Vm={evaluate:Dm,distanceToPlane:Qu,projectPoint:Ju,projectVector:el,generalizedProjectPoint:tl,intersectWithLine:nl,intersectWithPlane:rl,DISJOINT:Zu,COINCIDE:qu};function Lm(t,e){e.classHierarchy.push("vtkPlane"),t.distanceToPlane=n=>Qu(n,e.origin,e.normal),t.projectPoint=(n,r)=>{Ju(n,e.origin,e.normal,r)},t.projectVector=(n,r)=>el(n,e.normal,r),t.push=n=>{if(n!==0)for(let r=0;r<3;r++)e.origin[r]+=n*e.normal[r]},t.generalizedProjectPoint=(n,r)=>{tl(n,e.origin,e.normal,r)},t.evaluateFunction=(n,r,a)=>Array.isArray(n)?e.normal[0]*(n[0]-e.origin[0])+e.normal[1]*(n[1]-e.origin[1])+e.normal[2]*(n[2]-e.origin[2]):e.normal[0]*(n-e.origin[0])+e.normal[1]*(r-e.origin[1])+e.normal[2]*(a-e.origin[2]),t.evaluateGradient=n=>[e.normal[0],e.normal[1],e.normal[2]],t.intersectWithLine=(n,r)=>nl(n,r,e.origin,e.normal),t.intersectWithPlane=(n,r)=>rl(n,r,e.origin,e.normal)}var _m={normal:[0,0,1],origin:[0,0,0]};function al(t,e,n={}){Object.assign(e,_m,n),Yu.extend(t,e,n),O.setGetArray(t,e,["normal","origin"],3),Lm(t,e)}var Fm=O.newInstance(al,"vtkPlane"),gt={newInstance:Fm,extend:al,...Vm};var si=[Number.MAX_VALUE,-Number.MAX_VALUE,Number.MAX_VALUE,-Number.MAX_VALUE,Number.MAX_VALUE,-Number.MAX_VALUE];function il(t,e){return t[0]===e[0]&&t[1]===e[1]&&t[2]===e[2]&&t[3]===e[3]&&t[4]===e[4]&&t[5]===e[5]}function Zt(t){return t?.length>=6&&t[0]<=t[1]&&t[2]<=t[3]&&t[4]<=t[5]}function uo(t,e){return t[0]=e[0],t[1]=e[1],t[2]=e[2],t[3]=e[3],t[4]=e[4],t[5]=e[5],t}function lo(t){return uo(t,si)}function ri(t,e,n,r){let[a,i,s,o,c,f]=t;return typeof e=="number"?(t[0]=a<e?a:e,t[1]=i>e?i:e,t[2]=s<n?s:n,t[3]=o>n?o:n,t[4]=c<r?c:r,t[5]=f>r?f:r):(t[0]=a<e[0]?a:e[0],t[1]=i>e[0]?i:e[0],t[2]=s<e[1]?s:e[1],t[3]=o>e[1]?o:e[1],t[4]=c<e[2]?c:e[2],t[5]=f>e[2]?f:e[2]),t}function go(t,e){if(e.length===0)return t;if(Array.isArray(e[0]))for(let n=0;n<e.length;++n)ri(t,...e[n]);else for(let n=0;n<e.length;n+=3)ri(t,...e.slice(n,n+3));return t}function sl(t,e,n,r,a,i,s){let[o,c,f,u,g,l]=t;return s===void 0?(t[0]=Math.min(e[0],o),t[1]=Math.max(e[1],c),t[2]=Math.min(e[2],f),t[3]=Math.max(e[3],u),t[4]=Math.min(e[4],g),t[5]=Math.max(e[5],l)):(t[0]=Math.min(e,o),t[1]=Math.max(n,c),t[2]=Math.min(r,f),t[3]=Math.max(a,u),t[4]=Math.min(i,g),t[5]=Math.max(s,l)),t}function ol(t,e,n,r){let[a,i,s,o,c,f]=t;return t[0]=e,t[1]=e>i?e:i,t[2]=n,t[3]=n>o?n:o,t[4]=r,t[5]=r>f?r:f,a!==e||s!==n||c!==r}function cl(t,e,n,r){let[a,i,s,o,c,f]=t;return t[0]=e<a?e:a,t[1]=e,t[2]=n<s?n:s,t[3]=n,t[4]=r<c?r:c,t[5]=r,i!==e||o!==n||f!==r}function po(t,e){return e==null?Nm(t):(t[0]-=e,t[1]+=e,t[2]-=e,t[3]+=e,t[4]-=e,t[5]+=e,t)}function Nm(t){let e=[0,0,0],n=-1,r=0,a=0;for(let i=0;i<3;++i)a=t[i*2+1]-t[i*2],a>r&&(r=a,n=i),e[i]=a>0?1:0;if(n<0)return po(t,.5);for(let i=0;i<3;++i)if(!e[i]){let s=.005*r;t[i*2]-=s,t[i*2+1]+=s}return t}function ho(t,e,n,r){return Zt(t)?(e>=0?(t[0]*=e,t[1]*=e):(t[0]=e*t[1],t[1]=e*t[0]),n>=0?(t[2]*=n,t[3]*=n):(t[2]=n*t[3],t[3]=n*t[2]),r>=0?(t[4]*=r,t[5]*=r):(t[4]=r*t[5],t[5]=r*t[4]),!0):!1}function vo(t){return[.5*(t[0]+t[1]),.5*(t[2]+t[3]),.5*(t[4]+t[5])]}function Bm(t,e,n,r){if(!Zt(t))return!1;let a=vo(t);return t[0]-=a[0],t[1]-=a[0],t[2]-=a[1],t[3]-=a[1],t[4]-=a[2],t[5]-=a[2],ho(t,e,n,r),t[0]+=a[0],t[1]+=a[0],t[2]+=a[1],t[3]+=a[1],t[4]+=a[2],t[5]+=a[2],!0}function ea(t,e){return t[e*2+1]-t[e*2]}function ta(t){return[ea(t,0),ea(t,1),ea(t,2)]}function fl(t){return t.slice(0,2)}function ul(t){return t.slice(2,4)}function ll(t){return t.slice(4,6)}function gl(t){let e=ta(t);return e[0]>e[1]?e[0]>e[2]?e[0]:e[2]:e[1]>e[2]?e[1]:e[2]}function To(t){if(Zt(t)){let e=ta(t);return e[0]*e[0]+e[1]*e[1]+e[2]*e[2]}return null}function pl(t){let e=To(t);return e!==null?Math.sqrt(e):null}function oi(t){return[t[0],t[2],t[4]]}function ci(t){return[t[1],t[3],t[5]]}function ni(t,e){return t<=0&&e>=0||t>=0&&e<=0}function xo(t,e){return e[0]=[t[0],t[2],t[4]],e[1]=[t[0],t[2],t[5]],e[2]=[t[0],t[3],t[4]],e[3]=[t[0],t[3],t[5]],e[4]=[t[1],t[2],t[4]],e[5]=[t[1],t[2],t[5]],e[6]=[t[1],t[3],t[4]],e[7]=[t[1],t[3],t[5]],e}function hl(t,e,n){return e[0]=t[0],e[1]=t[2],e[2]=t[4],n[0]=t[1],n[1]=t[3],n[2]=t[5],e}function vl(t,e,n=[]){let r=xo(t,[]);for(let a=0;a<r.length;++a)W.transformMat4(r[a],r[a],e);return lo(n),go(n,r)}function dl(t,e=[]){return e[0]=.5*(t[1]-t[0]),e[1]=.5*(t[3]-t[2]),e[2]=.5*(t[5]-t[4]),e}function Tl(t,e,n,r){let a=[].concat(si),i=t.getData();for(let s=0;s<i.length;s+=3){let o=[i[s],i[s+1],i[s+2]],c=q(o,e);a[0]=Math.min(c,a[0]),a[1]=Math.max(c,a[1]);let f=q(o,n);a[2]=Math.min(f,a[2]),a[3]=Math.max(f,a[3]);let u=q(o,r);a[4]=Math.min(u,a[4]),a[5]=Math.max(u,a[5])}return a}function xl(t,e,n,r,a){let i=!0,s=[],o=0,c=[],f=[0,0,0],u=0,g=1,l=2;for(let h=0;h<3;h++)e[h]<t[2*h]?(s[h]=g,f[h]=t[2*h],i=!1):e[h]>t[2*h+1]?(s[h]=u,f[h]=t[2*h+1],i=!1):s[h]=l;if(i)return r[0]=e[0],r[1]=e[1],r[2]=e[2],a[0]=0,1;for(let h=0;h<3;h++)s[h]!==l&&n[h]!==0?c[h]=(f[h]-e[h])/n[h]:c[h]=-1;for(let h=0;h<3;h++)c[o]<c[h]&&(o=h);if(c[o]>1||c[o]<0)return 0;a[0]=c[o];for(let h=0;h<3;h++)if(o!==h){if(r[h]=e[h]+c[o]*n[h],r[h]<t[2*h]||r[h]>t[2*h+1])return 0}else r[h]=f[h];return 1}function yl(t,e,n){let r=[],a=0,i=1,s=1;for(let o=4;o<=5;++o){r[2]=t[o];for(let c=2;c<=3;++c){r[1]=t[c];for(let f=0;f<=1;++f)if(r[0]=t[f],a=gt.evaluate(n,e,r),s&&(i=a>=0?1:-1,s=0),a===0||i>0&&a<0||i<0&&a>0)return 1}}return 0}function ml(t,e){if(!(Zt(t)&&Zt(e)))return!1;let n=[0,0,0,0,0,0],r;for(let a=0;a<3;a++)if(r=!1,e[a*2]>=t[a*2]&&e[a*2]<=t[a*2+1]?(r=!0,n[a*2]=e[a*2]):t[a*2]>=e[a*2]&&t[a*2]<=e[a*2+1]&&(r=!0,n[a*2]=t[a*2]),e[a*2+1]>=t[a*2]&&e[a*2+1]<=t[a*2+1]?(r=!0,n[a*2+1]=e[2*a+1]):t[a*2+1]>=e[a*2]&&t[a*2+1]<=e[a*2+1]&&(r=!0,n[a*2+1]=t[a*2+1]),!r)return!1;return t[0]=n[0],t[1]=n[1],t[2]=n[2],t[3]=n[3],t[4]=n[4],t[5]=n[5],!0}function ai(t,e){if(!(Zt(t)&&Zt(e)))return!1;for(let n=0;n<3;n++)if(!(e[n*2]>=t[n*2]&&e[n*2]<=t[n*2+1])&&!(t[n*2]>=e[n*2]&&t[n*2]<=e[n*2+1])&&!(e[n*2+1]>=t[n*2]&&e[n*2+1]<=t[n*2+1])&&!(t[n*2+1]>=e[n*2]&&t[n*2+1]<=e[n*2+1]))return!1;return!0}function ii(t,e,n,r){return!(e<t[0]||e>t[1]||n<t[2]||n>t[3]||r<t[4]||r>t[5])}function Gm(t,e){return!(!ai(t,e)||!ii(t,...oi(e))||!ii(t,...ci(e)))}function Sl(t,e,n){let r=[[0,1,2,3,4,5,6,7],[0,1,4,5,2,3,6,7],[0,2,4,6,1,3,5,7]],a=[0,0,0,0,0,0,0,0],i=0;for(let g=0;g<2;g++)for(let l=2;l<4;l++)for(let h=4;h<6;h++){let y=[t[g],t[l],t[h]];a[i++]=gt.evaluate(n,e,y)}let s=2;for(;s--&&!(ni(a[r[s][0]],a[r[s][4]])&&ni(a[r[s][1]],a[r[s][5]])&&ni(a[r[s][2]],a[r[s][6]])&&ni(a[r[s][3]],a[r[s][7]])););if(s<0)return!1;let o=Math.sign(n[s]),c=Math.abs((t[s*2+1]-t[s*2])*n[s]),f=o>0?1:0;for(let g=0;g<4;g++){if(c===0)continue;let l=Math.abs(a[r[s][g]])/c;o>0&&l<f&&(f=l),o<0&&l>f&&(f=l)}let u=(1-f)*t[s*2]+f*t[s*2+1];return o>0?t[s*2]=u:t[s*2+1]=u,!0}function Cl(t,e){for(let r=0;r<3;++r)e[r]=e[r]<1?1:e[r];let n=e[0]*e[1]*e[2];for(;n>t;){for(let r=0;r<3;++r)e[r]=e[r]>1?e[r]-1:1;n=e[0]*e[1]*e[2]}}function wl(t,e,n,r=[]){e=e<=0?1:e;let a=0,i=[0,0,0],s=-1,o=0,c=ta(t),f=c[0]+c[1]+c[2],u=f*(.001/3);for(let p=0;p<3;++p)c[p]>o&&(s=p,o=c[p]),c[p]>u?(i[p]=1,a++):i[p]=0;let g=oi(t),l=ci(t);if(a<1)return n[0]=1,n[1]=1,n[2]=1,r[0]=g[0]-.5,r[1]=l[0]+.5,r[2]=g[1]-.5,r[3]=l[1]+.5,r[4]=g[2]-.5,r[5]=l[2]+.5,1;let h=e;h/=i[0]?c[0]/f:1,h/=i[1]?c[1]/f:1,h/=i[2]?c[2]/f:1,h**=1/a;for(let p=0;p<3;++p)n[p]=i[p]?Math.floor(h*c[p]/f):1,n[p]=n[p]<1?1:n[p];Cl(e,n);let y=.5*c[s]/n[s];for(let p=0;p<3;++p)i[p]?(r[2*p]=g[p],r[2*p+1]=l[p]):(r[2*p]=g[p]-y,r[2*p+1]=l[p]+y);return n[0]*n[1]*n[2]}function Ol(t,e){if(t[0]>=e[0]&&t[0]<=e[1]&&t[1]>=e[2]&&t[1]<=e[3]&&t[2]>=e[4]&&t[2]<=e[5])return 0;let n=[0,0,0];return t[0]<e[0]?n[0]=e[0]-t[0]:t[0]>e[1]&&(n[0]=t[0]-e[1]),t[1]<e[2]?n[1]=e[2]-t[1]:t[1]>e[3]&&(n[1]=t[1]-e[3]),t[2]<e[4]?n[2]=e[4]-t[2]:t[2]>e[5]&&(n[2]=t[2]-e[5]),q(n,n)}var Um=class{constructor(t){this.bounds=t,this.bounds||(this.bounds=new Float64Array(si))}getBounds(){return this.bounds}equals(t){return il(this.bounds,t)}isValid(){return Zt(this.bounds)}setBounds(t){return uo(this.bounds,t)}reset(){return lo(this.bounds)}addPoint(...t){return ri(this.bounds,...t)}addPoints(t){return go(this.bounds,t)}addBounds(t,e,n,r,a,i){return sl(this.bounds,t,e,n,r,a,i)}setMinPoint(t,e,n){return ol(this.bounds,t,e,n)}setMaxPoint(t,e,n){return cl(this.bounds,t,e,n)}inflate(t){return po(this.bounds,t)}scale(t,e,n){return ho(this.bounds,t,e,n)}getCenter(){return vo(this.bounds)}getLength(t){return ea(this.bounds,t)}getLengths(){return ta(this.bounds)}getMaxLength(){return gl(this.bounds)}getDiagonalLength(){return pl(this.bounds)}getDiagonalLength2(){return To(this.bounds)}getMinPoint(){return oi(this.bounds)}getMaxPoint(){return ci(this.bounds)}getXRange(){return fl(this.bounds)}getYRange(){return ul(this.bounds)}getZRange(){return ll(this.bounds)}getCorners(t){return xo(this.bounds,t)}computeCornerPoints(t,e){return hl(this.bounds,t,e)}computeLocalBounds(t,e,n){return Tl(this.bounds,t,e,n)}transformBounds(t,e=[]){return vl(this.bounds,t,e)}computeScale3(t){return dl(this.bounds,t)}cutWithPlane(t,e){return Sl(this.bounds,t,e)}intersectBox(t,e,n,r){return xl(this.bounds,t,e,n,r)}intersectPlane(t,e){return yl(this.bounds,t,e)}intersect(t){return ml(this.bounds,t)}intersects(t){return ai(this.bounds,t)}containsPoint(t,e,n){return ii(this.bounds,t,e,n)}contains(t){return ai(this.bounds,t)}computeDivisions(t,e,n=[]){return wl(this.bounds,t,e,n)}distance2ToBounds(t){return Ol(t,this.bounds)}};function km(t){return new Um(t&&t.bounds)}var bm={equals:il,isValid:Zt,setBounds:uo,reset:lo,addPoint:ri,addPoints:go,addBounds:sl,setMinPoint:ol,setMaxPoint:cl,inflate:po,scale:ho,scaleAboutCenter:Bm,getCenter:vo,getLength:ea,getLengths:ta,getMaxLength:gl,getDiagonalLength:pl,getDiagonalLength2:To,getMinPoint:oi,getMaxPoint:ci,getXRange:fl,getYRange:ul,getZRange:ll,getCorners:xo,computeCornerPoints:hl,computeLocalBounds:Tl,transformBounds:vl,computeScale3:dl,cutWithPlane:Sl,intersectBox:xl,intersectPlane:yl,intersect:ml,intersects:ai,containsPoint:ii,contains:Gm,computeDivisions:wl,clampDivisions:Cl,distance2ToBounds:Ol,INIT_BOUNDS:si},$={newInstance:km,...bm};var{isVtkObject:zm}=O;function Rl(t){let e=[];for(let n=0;n<t.length;n+=t[n]+1)e.push(t[n]);return e}function Ml(t){let e=0;for(let n=0;n<t.length;)n+=t[n]+1,e++;return e}var Wm={extractCellSizes:Rl,getNumberOfCells:Ml};function Am(t,e){e.classHierarchy.push("vtkCellArray");let n={...t};t.getNumberOfCells=r=>(e.numberOfCells!==void 0&&!r||(e.cellSizes?e.numberOfCells=e.cellSizes.length:e.numberOfCells=Ml(t.getData())),e.numberOfCells),t.getCellSizes=r=>(e.cellSizes!==void 0&&!r||(e.cellSizes=Rl(t.getData())),e.cellSizes),t.resize=r=>{let a=t.getNumberOfTuples();n.resize(r);let i=t.getNumberOfTuples();i<a&&(i===0?(e.numberOfCells=0,e.cellSizes=[]):(e.numberOfCells=void 0,e.cellSizes=void 0))},t.setData=r=>{n.setData(r,1),e.numberOfCells=void 0,e.cellSizes=void 0},t.getCell=r=>{let a=r,i=e.values[a++];return e.values.subarray(a,a+i)},t.insertNextCell=r=>{let a;zm(r)?a=r.getPointsIds():a=r;let i=t.getNumberOfCells(),s=a.length,o=new Array(s+1);o[0]=s;for(let c=0;c<s;++c)o[c+1]=a[c];return t.insertNextTuples(o),++e.numberOfCells,e.cellSizes!=null&&e.cellSizes.push(a.length),i},t.getMaxCellSize=()=>t.getCellSizes().reduce((r,a)=>Math.max(r,a),0)}function Pm(t){return{empty:!0,numberOfComponents:1,dataType:ee.UNSIGNED_INT,...t}}function El(t,e,n={}){Y.extend(t,e,Pm(n)),Am(t,e)}var Hm=O.newInstance(El,"vtkCellArray"),be={newInstance:Hm,extend:El,...Wm};var{vtkErrorMacro:Im,vtkWarningMacro:jm}=O;function $m(t,e){let n=0;e.classHierarchy.push("vtkPoints"),t.getNumberOfPoints=t.getNumberOfTuples,t.setNumberOfPoints=(i,s=3)=>{t.getNumberOfPoints()!==i&&(e.size=i*s,e.values=O.newTypedArray(e.dataType,e.size),t.setNumberOfComponents(s),t.modified())},t.setPoint=(i,...s)=>{t.setTuple(i,s)},t.getPoint=t.getTuple,t.findPoint=t.findTuple,t.insertNextPoint=(i,s,o)=>t.insertNextTuple([i,s,o]),t.insertPoint=(i,s)=>t.insertTuple(i,s);let r=t.getBounds;t.getBounds=()=>(n<e.mtime&&t.computeBounds(),r());let a=t.getBoundsByReference;t.getBoundsByReference=()=>(n<e.mtime&&t.computeBounds(),a()),t.computeBounds=()=>{if(t.getNumberOfComponents()===3){let i=t.getRange(0);e.bounds[0]=i[0],e.bounds[1]=i[1];let s=t.getRange(1);e.bounds[2]=s[0],e.bounds[3]=s[1];let o=t.getRange(2);e.bounds[4]=o[0],e.bounds[5]=o[1]}else if(t.getNumberOfComponents()===2){let i=t.getRange(0);e.bounds[0]=i[0],e.bounds[1]=i[1];let s=t.getRange(1);e.bounds[2]=s[0],e.bounds[3]=s[1],e.bounds[4]=0,e.bounds[5]=0}else Im(`getBounds called on an array with components of ${t.getNumberOfComponents()}`),Zr(e.bounds);n=O.getCurrentGlobalMTime()}}var Dl={empty:!0,numberOfComponents:3,dataType:ee.FLOAT,bounds:[1,-1,1,-1,1,-1]};function Vl(t,e,n={}){Object.assign(e,Dl,n);let r=n.numberOfComponents==null||n.numberOfComponents<2,{numberOfComponents:a}=n;r&&(a=Dl.numberOfComponents);let i={...n,numberOfComponents:a},s=n.size??n.values?.length;if(r&&s!=null&&s%a!==0){let o=Math.floor(s/a)*a;jm(`Dropping ${s-o} incomplete point component(s)`),i.size=o}Y.extend(t,e,i),O.getArray(t,e,["bounds"],6),$m(t,e)}var Km=O.newInstance(Vl,"vtkPoints"),Qt={newInstance:Km,extend:Vl};function Xm(t,e){e.classHierarchy.push("vtkCell"),t.initialize=(n,r=null)=>{if(r){e.pointsIds=r;let a=e.points.getData();a.length!==3*e.pointsIds.length&&(a=O.newTypedArray(n.getDataType(),3*e.pointsIds.length));let i=n.getData();e.pointsIds.forEach((s,o)=>{let c=3*s,f=3*o;a[f]=i[c],a[++f]=i[++c],a[++f]=i[++c]}),e.points.setData(a)}else{e.points=n,e.pointsIds=new Array(n.getNumberOfPoints());for(let a=n.getNumberOfPoints()-1;a>=0;--a)e.pointsIds[a]=a}},t.getBounds=()=>e.points.getBounds(),t.getLength2=()=>{let n=$.getLengths(t.getBounds());return n[0]*n[0]+n[1]*n[1]+n[2]*n[2]},t.getParametricDistance=n=>{let r,a=0;for(let i=0;i<3;i++)n[i]<0?r=-n[i]:n[i]>1?r=n[i]-1:r=0,r>a&&(a=r);return a},t.getNumberOfPoints=()=>e.points.getNumberOfPoints(),t.deepCopy=n=>{n.initialize(e.points,e.pointsIds)},t.getCellDimension=()=>{},t.intersectWithLine=(n,r,a,i,s,o,c)=>{},t.evaluatePosition=(n,r,a,i,s,o)=>{O.vtkErrorMacro("vtkCell.evaluatePosition is not implemented.")}}var Ym={bounds:[-1,-1,-1,-1,-1,-1],pointsIds:[]};function Ll(t,e,n={}){Object.assign(e,Ym,n),O.obj(t,e),e.points||(e.points=Qt.newInstance()),O.get(t,e,["points","pointsIds"]),Xm(t,e)}var qm=O.newInstance(Ll,"vtkCell"),pt={newInstance:qm,extend:Ll};function Zm(t,e){let n=e;for(e>=t.array.length&&(n+=t.array.length);n>t.array.length;)t.array.push({ncells:0,cells:null});t.array.length=n}function Qm(t,e){e.classHierarchy.push("vtkCellLinks"),t.buildLinks=n=>{let r=n.getPoints().getNumberOfPoints(),a=n.getNumberOfCells(),i=new Uint32Array(r);if(n.isA("vtkPolyData")){for(let s=0;s<a;++s){let{cellPointIds:o}=n.getCellPoints(s);o.forEach(c=>{t.incrementLinkCount(c)})}t.allocateLinks(r),e.maxId=r-1;for(let s=0;s<a;++s){let{cellPointIds:o}=n.getCellPoints(s);o.forEach(c=>{t.insertCellReference(c,i[c]++,s)})}}else{for(let s=0;s<a;s++)pt.newInstance().getPointsIds().forEach(o=>{t.incrementLinkCount(o)});t.allocateLinks(r),e.maxId=r-1;for(let s=0;s<a;++s)pt.newInstance().getPointsIds().forEach(o=>{t.insertCellReference(o,i[o]++,s)})}},t.allocate=(n,r=1e3)=>{let a=new Array(n);for(let i=0;i<n;++i)a[i]={ncells:0,cells:null};e.array=a,e.extend=r,e.maxId=-1},t.initialize=()=>{e.array=null},t.getLink=n=>e.array[n],t.getNcells=n=>e.array[n].ncells,t.getCells=n=>e.array[n].cells,t.insertNextPoint=n=>{e.array.push({ncells:n,cells:Array(n)}),++e.maxId},t.insertNextCellReference=(n,r)=>{e.array[n].cells[e.array[n].ncells++]=r},t.deletePoint=n=>{e.array[n].ncells=0,e.array[n].cells=null},t.removeCellReference=(n,r)=>{e.array[r].cells=e.array[r].cells.filter(a=>a!==n),e.array[r].ncells=e.array[r].cells.length},t.addCellReference=(n,r)=>{e.array[r].cells[e.array[r].ncells++]=n},t.resizeCellList=(n,r)=>{e.array[n].cells.length=r},t.squeeze=()=>{Zm(e,e.maxId+1)},t.reset=()=>{e.maxId=-1},t.deepCopy=n=>{e.array=[...n.array],e.extend=n.extend,e.maxId=n.maxId},t.incrementLinkCount=n=>{++e.array[n].ncells},t.allocateLinks=n=>{for(let r=0;r<n;++r)e.array[r].cells=new Array(e.array[r].ncells)},t.insertCellReference=(n,r,a)=>{e.array[n].cells[r]=a}}var Jm={array:null,maxId:0,extend:0};function _l(t,e,n={}){Object.assign(e,Jm,n),O.obj(t,e),Qm(t,e)}var eS=O.newInstance(_l,"vtkCellLinks"),Fl={newInstance:eS,extend:_l};var ve={VTK_EMPTY_CELL:0,VTK_VERTEX:1,VTK_POLY_VERTEX:2,VTK_LINE:3,VTK_POLY_LINE:4,VTK_TRIANGLE:5,VTK_TRIANGLE_STRIP:6,VTK_POLYGON:7,VTK_PIXEL:8,VTK_QUAD:9,VTK_TETRA:10,VTK_VOXEL:11,VTK_HEXAHEDRON:12,VTK_WEDGE:13,VTK_PYRAMID:14,VTK_PENTAGONAL_PRISM:15,VTK_HEXAGONAL_PRISM:16,VTK_QUADRATIC_EDGE:21,VTK_QUADRATIC_TRIANGLE:22,VTK_QUADRATIC_QUAD:23,VTK_QUADRATIC_POLYGON:36,VTK_QUADRATIC_TETRA:24,VTK_QUADRATIC_HEXAHEDRON:25,VTK_QUADRATIC_WEDGE:26,VTK_QUADRATIC_PYRAMID:27,VTK_BIQUADRATIC_QUAD:28,VTK_TRIQUADRATIC_HEXAHEDRON:29,VTK_QUADRATIC_LINEAR_QUAD:30,VTK_QUADRATIC_LINEAR_WEDGE:31,VTK_BIQUADRATIC_QUADRATIC_WEDGE:32,VTK_BIQUADRATIC_QUADRATIC_HEXAHEDRON:33,VTK_BIQUADRATIC_TRIANGLE:34,VTK_CUBIC_LINE:35,VTK_CONVEX_POINT_SET:41,VTK_POLYHEDRON:42,VTK_PARAMETRIC_CURVE:51,VTK_PARAMETRIC_SURFACE:52,VTK_PARAMETRIC_TRI_SURFACE:53,VTK_PARAMETRIC_QUAD_SURFACE:54,VTK_PARAMETRIC_TETRA_REGION:55,VTK_PARAMETRIC_HEX_REGION:56,VTK_HIGHER_ORDER_EDGE:60,VTK_HIGHER_ORDER_TRIANGLE:61,VTK_HIGHER_ORDER_QUAD:62,VTK_HIGHER_ORDER_POLYGON:63,VTK_HIGHER_ORDER_TETRAHEDRON:64,VTK_HIGHER_ORDER_WEDGE:65,VTK_HIGHER_ORDER_PYRAMID:66,VTK_HIGHER_ORDER_HEXAHEDRON:67,VTK_LAGRANGE_CURVE:68,VTK_LAGRANGE_TRIANGLE:69,VTK_LAGRANGE_QUADRILATERAL:70,VTK_LAGRANGE_TETRAHEDRON:71,VTK_LAGRANGE_HEXAHEDRON:72,VTK_LAGRANGE_WEDGE:73,VTK_LAGRANGE_PYRAMID:74,VTK_NUMBER_OF_CELL_TYPES:75},fi=["vtkEmptyCell","vtkVertex","vtkPolyVertex","vtkLine","vtkPolyLine","vtkTriangle","vtkTriangleStrip","vtkPolygon","vtkPixel","vtkQuad","vtkTetra","vtkVoxel","vtkHexahedron","vtkWedge","vtkPyramid","vtkPentagonalPrism","vtkHexagonalPrism","UnknownClass","UnknownClass","UnknownClass","UnknownClass","vtkQuadraticEdge","vtkQuadraticTriangle","vtkQuadraticQuad","vtkQuadraticTetra","vtkQuadraticHexahedron","vtkQuadraticWedge","vtkQuadraticPyramid","vtkBiQuadraticQuad","vtkTriQuadraticHexahedron","vtkQuadraticLinearQuad","vtkQuadraticLinearWedge","vtkBiQuadraticQuadraticWedge","vtkBiQuadraticQuadraticHexahedron","vtkBiQuadraticTriangle","vtkCubicLine","vtkQuadraticPolygon","UnknownClass","UnknownClass","UnknownClass","UnknownClass","vtkConvexPointSet","UnknownClass","UnknownClass","UnknownClass","UnknownClass","UnknownClass","UnknownClass","UnknownClass","UnknownClass","UnknownClass","vtkParametricCurve","vtkParametricSurface","vtkParametricTriSurface","vtkParametricQuadSurface","vtkParametricTetraRegion","vtkParametricHexRegion","UnknownClass","UnknownClass","UnknownClass","vtkHigherOrderEdge","vtkHigherOrderTriangle","vtkHigherOrderQuad","vtkHigherOrderPolygon","vtkHigherOrderTetrahedron","vtkHigherOrderWedge","vtkHigherOrderPyramid","vtkHigherOrderHexahedron"];function tS(t){return t<fi.length?fi[t]:"UnknownClass"}function nS(t){return fi.findIndex(t)}function rS(t){return t<ve.VTK_QUADRATIC_EDGE||t===ve.VTK_CONVEX_POINT_SET||t===ve.VTK_POLYHEDRON}function aS(t){return t===ve.VTK_TRIANGLE_STRIP||t===ve.VTK_POLY_LINE||t===ve.VTK_POLY_VERTEX}var iS={getClassNameFromTypeId:tS,getTypeIdFromClassName:nS,isLinear:rS,hasSubCells:aS};function sS(t,e){e.classHierarchy.push("vtkCellTypes"),t.allocate=(n=512,r=1e3)=>{e.size=n>0?n:1,e.extend=r>0?r:1,e.maxId=-1,e.typeArray=new Uint8Array(n),e.locationArray=new Uint32Array(n)},t.insertCell=(n,r,a)=>{e.typeArray[n]=r,e.locationArray[n]=a,n>e.maxId&&(e.maxId=n)},t.insertNextCell=(n,r)=>(t.insertCell(++e.maxId,n,r),e.maxId),t.setCellTypes=(n,r,a)=>{e.size=n,e.typeArray=r,e.locationArray=a,e.maxId=n-1},t.getCellLocation=n=>e.locationArray[n],t.deleteCell=n=>{e.typeArray[n]=ve.VTK_EMPTY_CELL},t.getNumberOfTypes=()=>e.maxId+1,t.isType=n=>{let r=t.getNumberOfTypes();for(let a=0;a<r;++a)if(n===t.getCellType(a))return!0;return!1},t.insertNextType=n=>t.insertNextCell(n,-1),t.getCellType=n=>e.typeArray[n],t.reset=()=>{e.maxId=-1},t.deepCopy=n=>{t.allocate(n.getSize(),n.getExtend()),e.typeArray.set(n.getTypeArray()),e.locationArray.set(n.getLocationArray()),e.maxId=n.getMaxId()}}var oS={size:0,maxId:-1,extend:1e3};function Nl(t,e,n={}){Object.assign(e,oS,n),O.obj(t,e),O.get(t,e,["size","maxId","extend"]),O.getArray(t,e,["typeArray","locationArray"]),sS(t,e)}var cS=O.newInstance(Nl,"vtkCellTypes"),Bl={newInstance:cS,extend:Nl,...iS};var yo={NO_INTERSECTION:0,YES_INTERSECTION:1,ON_LINE:2},mo={IntersectionState:yo};var{IntersectionState:ui}=mo;function hr(t,e,n,r=null){let a={t:Number.MIN_VALUE,distance:0},i=[],s;i[0]=n[0]-e[0],i[1]=n[1]-e[1],i[2]=n[2]-e[2];let o=i[0]*(t[0]-e[0])+i[1]*(t[1]-e[1])+i[2]*(t[2]-e[2]),c=q(i,i),f=1e-5*o;return c!==0&&(a.t=o/c),f<0&&(f=-f),-f<c&&c<f||c<=0||a.t<0?s=e:a.t>1?s=n:(s=i,i[0]=e[0]+a.t*i[0],i[1]=e[1]+a.t*i[1],i[2]=e[2]+a.t*i[2]),r&&(r[0]=s[0],r[1]=s[1],r[2]=s[2]),a.distance=ze(s,t),a}function Gl(t,e,n,r,a,i){let s=[],o=[],c=[];a[0]=0,i[0]=0,Le(e,t,s),Le(r,n,o),Le(n,t,c);let f=[q(s,s),-q(s,o),-q(s,o),q(o,o)],u=[];if(u[0]=q(s,c),u[1]=-q(o,c),bs(f,u,2)===0){let g=Number.MAX_VALUE,l=[t,e,n,r],h=[n,n,t,t],y=[r,r,e,e],p=[i[0],i[0],a[0],a[0]],v=[a[0],a[0],i[0],i[0]],x;for(let S=0;S<4;S++)x=hr(l[S],h[S],y[S]),x.distance<g&&(g=x.distance,p[S]=x.t,v[S]=S%2);return ui.ON_LINE}return a[0]=u[0],i[0]=u[1],a[0]>=0&&a[0]<=1&&i[0]>=0&&i[0]<=1?ui.YES_INTERSECTION:ui.NO_INTERSECTION}var fS={distanceToLine:hr,intersection:Gl};function uS(t,e){e.classHierarchy.push("vtkLine");function n(r){return r>=0&&r<=1}t.getCellDimension=()=>1,t.intersectWithLine=(r,a,i,s,o)=>{let c={intersect:0,t:Number.MAX_VALUE,subId:0,betweenPoints:null};o[1]=0,o[2]=0;let f=[],u=[],g=[];e.points.getPoint(0,u),e.points.getPoint(1,g);let l=[],h=[],y=Gl(r,a,u,g,l,h);if(c.t=l[0],c.betweenPoints=n(c.t),o[0]=h[0],y===ui.YES_INTERSECTION){for(let p=0;p<3;p++)s[p]=u[p]+o[0]*(g[p]-u[p]),f[p]=r[p]+c.t*(a[p]-r[p]);if(ze(s,f)<=i*i)return c.intersect=1,c}else{let p;if(c.t<0)return p=hr(r,u,g,s),p.distance<=i*i&&(c.t=0,c.intersect=1,c.betweenPoints=!0),c;if(c.t>1)return p=hr(a,u,g,s),p.distance<=i*i&&(c.t=1,c.intersect=1,c.betweenPoints=!0),c;if(o[0]<0)return o[0]=0,p=hr(u,r,a,s),c.t=p.t,p.distance<=i*i&&(c.intersect=1),c;if(o[0]>1)return o[0]=1,p=hr(g,r,a,s),c.t=p.t,p.distance<=i*i&&(c.intersect=1),c}return c},t.evaluateLocation=(r,a,i)=>{let s=[],o=[];e.points.getPoint(0,s),e.points.getPoint(1,o);for(let c=0;c<3;c++)a[c]=s[c]+r[0]*(o[c]-s[c]);i[0]=1-r[0],i[1]=r[0]},t.evaluateOrientation=(r,a,i)=>e.orientations?(_e.slerp(a,e.orientations[0],e.orientations[1],r[0]),i[0]=1-r[0],i[1]=r[0],!0):!1}var lS={orientations:null};function Ul(t,e,n={}){Object.assign(e,lS,n),pt.extend(t,e,n),O.setGet(t,e,["orientations"]),uS(t,e)}var gS=O.newInstance(Ul,"vtkLine"),Be={newInstance:gS,extend:Ul,...fS,...mo};var{vtkErrorMacro:kl,vtkWarningMacro:pS}=O;function hS(t,e){e.classHierarchy.push("vtkFieldData");let n=t.getState;e.arrays&&(e.arrays=e.arrays.map(r=>({data:et(r.data)}))),t.initialize=()=>{t.initializeFields(),t.copyAllOn(),t.clearFieldFlags()},t.initializeFields=()=>{e.arrays=[],e.copyFieldFlags={},t.modified()},t.copyStructure=r=>{t.initializeFields(),e.copyFieldFlags=r.getCopyFieldFlags().map(a=>a),e.arrays=r.getArrays().map(a=>({data:a}))},t.getNumberOfArrays=()=>e.arrays.length,t.getNumberOfActiveArrays=()=>e.arrays.length,t.addArray=r=>{let a=r.getName(),{array:i,index:s}=t.getArrayWithIndex(a);return i!=null?(e.arrays[s]={data:r},s):(e.arrays=[].concat(e.arrays,{data:r}),e.arrays.length-1)},t.removeAllArrays=()=>{e.arrays=[]},t.removeArray=r=>{let a=e.arrays.findIndex(i=>i.data.getName()===r);return t.removeArrayByIndex(a)},t.removeArrayByIndex=r=>r!==-1&&r<e.arrays.length?(e.arrays.splice(r,1),!0):!1,t.getArrays=()=>e.arrays.map(r=>r.data),t.getArray=r=>typeof r=="number"?t.getArrayByIndex(r):t.getArrayByName(r),t.getArrayByName=r=>e.arrays.reduce((a,i,s)=>i.data.getName()===r?i.data:a,null),t.getArrayWithIndex=r=>{let a=e.arrays.findIndex(i=>i.data.getName()===r);return{array:a!==-1?e.arrays[a].data:null,index:a}},t.getArrayByIndex=r=>r>=0&&r<e.arrays.length?e.arrays[r].data:null,t.hasArray=r=>t.getArrayWithIndex(r).index>=0,t.getArrayName=r=>{let a=e.arrays[r];return a?a.data.getName():""},t.getCopyFieldFlags=()=>e.copyFieldFlags,t.getFlag=r=>e.copyFieldFlags[r],t.passData=(r,a=-1,i=-1)=>{r.getArrays().forEach(s=>{let o=t.getFlag(s.getName());if(o!==!1&&!(e.doCopyAllOff&&o!==!0)&&s){let c=t.getArrayByName(s.getName());if(c)if(s.getNumberOfComponents()===c.getNumberOfComponents())if(a>-1&&a<s.getNumberOfTuples()){let f=i>-1?i:a;c.insertTuple(f,s.getTuple(a))}else c.insertTuples(0,s.getTuples());else kl("Unhandled case in passData");else if(a<0||a>s.getNumberOfTuples())t.addArray(s),r.getAttributes(s).forEach(f=>{t.setAttribute(s,f)});else{let f=s.getNumberOfComponents(),u=s.getNumberOfValues(),g=i>-1?i:a;u<=g*f&&(u=(g+1)*f),c=Y.newInstance({name:s.getName(),dataType:s.getDataType(),numberOfComponents:f,values:O.newTypedArray(s.getDataType(),u),size:0}),c.insertTuple(g,s.getTuple(a)),t.addArray(c),r.getAttributes(s).forEach(l=>{t.setAttribute(c,l)})}}})},t.interpolateData=(r,a=-1,i=-1,s=-1,o=.5)=>{r.getArrays().forEach(c=>{let f=t.getFlag(c.getName());if(f!==!1&&!(e.doCopyAllOff&&f!==!0)&&c){let u=t.getArrayByName(c.getName());if(u)if(c.getNumberOfComponents()===u.getNumberOfComponents())if(a>-1&&a<c.getNumberOfTuples()){let g=s>-1?s:a;u.interpolateTuple(g,c,a,c,i,o),pS("Unexpected case in interpolateData")}else u.insertNextTuples(c.getTuples());else kl("Unhandled case in interpolateData");else if(a<0||i<0||a>c.getNumberOfTuples())t.addArray(c),r.getAttributes(c).forEach(g=>{t.setAttribute(c,g)});else{let g=c.getNumberOfComponents(),l=c.getNumberOfValues(),h=s>-1?s:a;l<=h*g&&(l=(h+1)*g),u=Y.newInstance({name:c.getName(),dataType:c.getDataType(),numberOfComponents:g,values:O.newTypedArray(c.getDataType(),l),size:0}),u.interpolateTuple(h,c,a,c,i,o),t.addArray(u),r.getAttributes(c).forEach(y=>{t.setAttribute(u,y)})}}})},t.copyFieldOn=r=>{e.copyFieldFlags[r]=!0},t.copyFieldOff=r=>{e.copyFieldFlags[r]=!1},t.copyAllOn=()=>{(!e.doCopyAllOn||e.doCopyAllOff)&&(e.doCopyAllOn=!0,e.doCopyAllOff=!1,t.modified())},t.copyAllOff=()=>{(e.doCopyAllOn||!e.doCopyAllOff)&&(e.doCopyAllOn=!1,e.doCopyAllOff=!0,t.modified())},t.clearFieldFlags=()=>{e.copyFieldFlags={}},t.deepCopy=r=>{e.arrays=r.getArrays().map(a=>{let i=a.newClone();return i.deepCopy(a),{data:i}})},t.copyFlags=r=>r.getCopyFieldFlags().map(a=>a),t.reset=()=>e.arrays.forEach(r=>r.data.reset()),t.getMTime=()=>e.arrays.reduce((r,a)=>a.data.getMTime()>r?a.data.getMTime():r,e.mtime),t.getNumberOfComponents=()=>e.arrays.reduce((r,a)=>r+a.data.getNumberOfComponents(),0),t.getNumberOfTuples=()=>e.arrays.length>0?e.arrays[0].getNumberOfTuples():0,t.getState=r=>{let a=n(r);return a&&(a.arrays=e.arrays.map(i=>({data:i.data.getState(r)}))),a}}var vS={arrays:[],copyFieldFlags:[],doCopyAllOn:!0,doCopyAllOff:!1};function bl(t,e,n={}){Object.assign(e,vS,n),O.obj(t,e),hS(t,e)}var dS=O.newInstance(bl,"vtkFieldData"),zl={newInstance:dS,extend:bl};var TS={SCALARS:0,VECTORS:1,NORMALS:2,TCOORDS:3,TENSORS:4,GLOBALIDS:5,PEDIGREEIDS:6,EDGEFLAG:7,NUM_ATTRIBUTES:8},xS={MAX:0,EXACT:1,NOLIMIT:2},yS={DUPLICATECELL:1,HIGHCONNECTIVITYCELL:2,LOWCONNECTIVITYCELL:4,REFINEDCELL:8,EXTERIORCELL:16,HIDDENCELL:32},mS={DUPLICATEPOINT:1,HIDDENPOINT:2},SS={COPYTUPLE:0,INTERPOLATE:1,PASSDATA:2,ALLCOPY:3},CS="vtkGhostType",wS={DEFAULT:0,SINGLE:1,DOUBLE:2},So={AttributeCopyOperations:SS,AttributeLimitTypes:xS,AttributeTypes:TS,CellGhostTypes:yS,DesiredOutputPrecision:wS,PointGhostTypes:mS,ghostArrayName:CS};var{AttributeTypes:un,AttributeCopyOperations:zn}=So,{vtkWarningMacro:li}=O;function OS(t,e){let n=["Scalars","Vectors","Normals","TCoords","Tensors","GlobalIds","PedigreeIds"];function r(s){let o=n.find(c=>un[c.toUpperCase()]===s||typeof s!="number"&&c.toLowerCase()===s.toLowerCase());return typeof o>"u"&&(o=null),o}e.classHierarchy.push("vtkDataSetAttributes");let a={...t};t.checkNumberOfComponents=s=>!0,t.setAttribute=(s,o)=>{let c=r(o);if(s&&c.toUpperCase()==="PEDIGREEIDS"&&!s.isA("vtkDataArray"))return li(`Cannot set attribute ${c}. The attribute must be a vtkDataArray.`),-1;if(s&&!t.checkNumberOfComponents(s,c))return li(`Cannot set attribute ${c}. Incorrect number of components.`),-1;if(s){let f=t.addArray(s);e[`active${c}`]=f}else e[`active${c}`]=-1;return t.modified(),e[`active${c}`]},t.getAttributes=s=>n.filter(o=>t[`get${o}`]()===s),t.setActiveAttributeByName=(s,o)=>t.setActiveAttributeByIndex(t.getArrayWithIndex(s).index,o),t.setActiveAttributeByIndex=(s,o)=>{let c=r(o);if(s>=0&&s<e.arrays.length){if(c.toUpperCase()!=="PEDIGREEIDS"){let f=t.getArrayByIndex(s);if(!f.isA("vtkDataArray"))return li(`Cannot set attribute ${c}. Only vtkDataArray subclasses can be set as active attributes.`),-1;if(!t.checkNumberOfComponents(f,c))return li(`Cannot set attribute ${c}. Incorrect number of components.`),-1}return e[`active${c}`]=s,t.modified(),s}return s===-1&&(e[`active${c}`]=s,t.modified()),-1},t.getActiveAttribute=s=>t[`get${r(s)}`](),t.removeAllArrays=()=>{n.forEach(s=>{e[`active${s}`]=-1}),a.removeAllArrays()},t.removeArrayByIndex=s=>(s!==-1&&n.forEach(o=>{s===e[`active${o}`]?e[`active${o}`]=-1:s<e[`active${o}`]&&(e[`active${o}`]-=1)}),a.removeArrayByIndex(s)),n.forEach(s=>{let o=`active${s}`;t[`get${s}`]=()=>t.getArrayByIndex(e[o]),t[`set${s}`]=c=>t.setAttribute(c,s),t[`setActive${s}`]=c=>t.setActiveAttributeByIndex(t.getArrayWithIndex(c).index,s),t[`copy${s}Off`]=()=>{let c=s.toUpperCase();e.copyAttributeFlags[zn.PASSDATA][un[c]]=!1},t[`copy${s}On`]=()=>{let c=s.toUpperCase();e.copyAttributeFlags[zn.PASSDATA][un[c]]=!0}}),t.initializeAttributeCopyFlags=()=>{e.copyAttributeFlags=[],Object.keys(zn).filter(s=>s!=="ALLCOPY").forEach(s=>{e.copyAttributeFlags[zn[s]]=Object.keys(un).filter(o=>o!=="NUM_ATTRIBUTES").reduce((o,c)=>(o[un[c]]=!0,o),[])}),e.copyAttributeFlags[zn.COPYTUPLE][un.GLOBALIDS]=!1,e.copyAttributeFlags[zn.INTERPOLATE][un.GLOBALIDS]=!1,e.copyAttributeFlags[zn.COPYTUPLE][un.PEDIGREEIDS]=!1},t.initialize=O.chain(t.initialize,t.initializeAttributeCopyFlags),e.dataArrays&&Object.keys(e.dataArrays).length&&Object.keys(e.dataArrays).forEach(s=>{!e.dataArrays[s].ref&&e.dataArrays[s].type==="vtkDataArray"&&t.addArray(Y.newInstance(e.dataArrays[s]))});let i=t.shallowCopy;t.shallowCopy=(s,o)=>{i(s,o),e.arrays=s.getArrays().map(c=>{let f=c.newClone();return f.shallowCopy(c,o),{data:f}})},t.initializeAttributeCopyFlags()}var RS={activeScalars:-1,activeVectors:-1,activeTensors:-1,activeNormals:-1,activeTCoords:-1,activeGlobalIds:-1,activePedigreeIds:-1};function Wl(t,e,n={}){Object.assign(e,RS,n),zl.extend(t,e,n),O.setGet(t,e,["activeScalars","activeNormals","activeTCoords","activeVectors","activeTensors","activeGlobalIds","activePedigreeIds"]),e.arrays||(e.arrays={}),OS(t,e)}var MS=O.newInstance(Wl,"vtkDataSetAttributes"),Co={newInstance:MS,extend:Wl,...So};var ES={UNIFORM:0,DATA_OBJECT_FIELD:0,COORDINATE:1,POINT_DATA:1,POINT:2,POINT_FIELD_DATA:2,CELL:3,CELL_FIELD_DATA:3,VERTEX:4,VERTEX_FIELD_DATA:4,EDGE:5,EDGE_FIELD_DATA:5,ROW:6,ROW_DATA:6},DS={FIELD_ASSOCIATION_POINTS:0,FIELD_ASSOCIATION_CELLS:1,FIELD_ASSOCIATION_NONE:2,FIELD_ASSOCIATION_POINTS_THEN_CELLS:3,FIELD_ASSOCIATION_VERTICES:4,FIELD_ASSOCIATION_EDGES:5,FIELD_ASSOCIATION_ROWS:6,NUMBER_OF_ASSOCIATIONS:7},Al={FieldDataTypes:ES,FieldAssociations:DS};var na=["pointData","cellData","fieldData"];function VS(t,e){e.classHierarchy.push("vtkDataSet"),na.forEach(a=>{e[a]?e[a]=et(e[a]):e[a]=Co.newInstance()}),t.computeBounds=()=>{if(e.modifiedTime&&e.computeTime&&e.modifiedTime>e.computeTime||!e.computeTime){let a=t.getPoints();a?.getNumberOfPoints()?$.setBounds(e.bounds,a.getBoundsByReference()):e.bounds=me.createUninitializedBounds(),e.computeTime=O.getCurrentGlobalMTime()}},t.getLength2=()=>{let a=t.getBoundsByReference();return!a||a.length!==6?0:$.getDiagonalLength2(a)},t.getLength=()=>Math.sqrt(t.getLength2()),t.getCenter=()=>{let a=t.getBoundsByReference();return!a||a.length!==6?[0,0,0]:$.getCenter(a)},t.getCellBounds=a=>{let i=t.getCell(a);return i?i.getBounds():me.createUninitializedBounds()},t.getBounds=O.chain(()=>t.computeBounds,t.getBounds),t.getBoundsByReference=O.chain(()=>t.computeBounds,t.getBoundsByReference);let n=t.shallowCopy;t.shallowCopy=(a,i=!1)=>{n(a,i),na.forEach(s=>{e[s]=Co.newInstance(),e[s].shallowCopy(a.getReferenceByName(s))})};let r=t.getMTime;t.getMTime=()=>na.reduce((a,i)=>Math.max(a,e[i]?.getMTime()??a),r()),t.initialize=()=>(na.forEach(a=>e[a]?.initialize()),t)}var LS={};function Pl(t,e,n={}){Object.assign(e,LS,n),O.obj(t,e),O.setGet(t,e,na),O.getArray(t,e,["bounds"],6),VS(t,e)}var _S=O.newInstance(Pl,"vtkDataSet"),it={newInstance:_S,extend:Pl,...Al};function FS(t,e){e.classHierarchy.push("vtkPointSet"),e.points?e.points=et(e.points):e.points=Qt.newInstance(),t.getNumberOfPoints=()=>e.points.getNumberOfPoints(),t.getBounds=()=>e.points?.getBounds(),t.computeBounds=()=>{e.points?.computeBounds()};let n=t.shallowCopy;t.shallowCopy=(i,s=!1)=>{n(i,s),e.points=Qt.newInstance(),e.points.shallowCopy(i.getPoints())};let r=t.getMTime;t.getMTime=()=>{let i=r();return Math.max(i,e.points?.getMTime()??i)};let a=t.initialize;t.initialize=()=>(e.points?.initialize(),a())}var NS={};function Hl(t,e,n={}){Object.assign(e,NS,n),it.extend(t,e,n),O.setGet(t,e,["points"]),FS(t,e)}var BS=O.newInstance(Hl,"vtkPointSet"),Il={newInstance:BS,extend:Hl};function GS(t,e){e.classHierarchy.push("vtkPolyLine");let n=Be.newInstance();n.getPoints().setNumberOfPoints(2),t.getCellDimension=()=>1,t.intersectWithLine=(r,a,i,s,o,c,f)=>{let u={intersect:0,t:Number.MAX_VALUE,subId:0,betweenPoints:null},g=t.getNumberOfPoints()-1,l=Number.MAX_VALUE,h=[0,0,0],y=[0,0,0];for(let p=0;p<g;p++){let v=[0,0,0];n.getPoints().getData().set(e.points.getData().subarray(3*p,3*(p+2)));let x=n.intersectWithLine(i,s,o,c,f);if(x.intersect===1&&x.t<=u.t+o&&x.t>=r&&x.t<=a){u.intersect=1;let S=n.getParametricDistance(v);if(S<l||S===l&&x.t<u.t){u.subId=p,u.t=x.t,l=S;for(let T=0;T<3;T++)h[T]=c[T],y[T]=v[T]}}}return u},t.evaluateLocation=(r,a,i,s)=>(n.getPoints().getData().set(e.points.getData().subarray(3*r,3*(r+2))),n.evaluateLocation(a,i,s)),t.evaluateOrientation=(r,a,i,s)=>(e.orientations?n.setOrientations([e.orientations[r],e.orientations[r+1]]):n.setOrientations(null),n.evaluateOrientation(a,i,s)),t.getDistancesToFirstPoint=()=>{let r=e.distancesTime.getMTime();if(r<e.points.getMTime()||r<t.getMTime()){let a=t.getNumberOfPoints();if(e.distances?e.distances.length=a:e.distances=new Array(a),a>0){let i=new Array(3),s=new Array(3),o=0;e.distances[0]=o,e.points.getPoint(0,i);for(let c=1;c<a;++c)e.points.getPoint(c,s),o+=e.distanceFunction(i,s),e.distances[c]=o,W.copy(i,s)}e.distancesTime.modified()}return e.distances},t.findPointIdAtDistanceFromFirstPoint=r=>{let a=t.getDistancesToFirstPoint();if(a.length<2)return-1;let i=0,s=a.length-1;if(r<a[i]||r>a[s]||a[s]===0)return-1;for(;s-i>1;){let o=Math.floor((i+s)/2);a[o]<=r?i=o:s=o}return i}}var US={orientations:null,distanceFunction:W.dist};function jl(t,e,n={}){Object.assign(e,US,n),pt.extend(t,e,n),O.setGet(t,e,["orientations","distanceFunction"]),e.distancesTime={},O.obj(e.distancesTime,{mtime:0}),GS(t,e)}var kS=O.newInstance(jl,"vtkPolyLine"),$l={newInstance:kS,extend:jl};function bS(t,e){e.classHierarchy.push("vtkPriorityQueue"),t.push=(n,r)=>{let a=e.elements.findIndex(i=>i.priority>n);e.elements.splice(a,0,{priority:n,element:r})},t.pop=()=>e.elements.length>0?e.elements.shift().element:null,t.deleteById=n=>{e.elements=e.elements.filter(({element:r})=>r.id!==n)},t.length=()=>e.elements.length}var zS={elements:[]};function Kl(t,e,n={}){Object.assign(e,zS,n),O.obj(t,e),bS(t,e)}var WS=O.newInstance(Kl,"vtkPriorityQueue"),Xl={newInstance:WS,extend:Kl};var Yl=11920929e-14,ql=1e-8,ln={FAILURE:-1,OUTSIDE:0,INSIDE:1,INTERSECTION:2,ON_LINE:3};function Zl(t,e,n,r,a){return(r[t]-n[t])*(a[e]-n[e])-(a[t]-n[t])*(r[e]-n[e])}function AS(t,e,n,r){if(t[0]<n[0]||t[0]>n[1]||t[1]<n[2]||t[1]>n[3]||t[2]<n[4]||t[2]>n[5])return ln.OUTSIDE;if($e(r)<=11920929e-14)return ln.FAILURE;let a=ql*((n[1]-n[0])*(n[1]-n[0])+(n[3]-n[2])*(n[3]-n[2])+(n[5]-n[4])*(n[5]-n[4]));a*=a,a=a===0?Yl:a;let i=[],s=[];for(let u=0;u<e.length;){if(i[0]=e[u++],i[1]=e[u++],i[2]=e[u++],ze(t,i)<=a)return ln.INSIDE;let{distance:g,t:l}=Be.distanceToLine(t,i,s);if(g<=a&&l>0&&l<1)return ln.INSIDE}let o,c;Math.abs(r[0])>Math.abs(r[1])?Math.abs(r[0])>Math.abs(r[2])?(o=1,c=2):(o=0,c=1):Math.abs(r[1])>Math.abs(r[2])?(o=0,c=2):(o=0,c=1);let f=0;for(let u=0;u<e.length;)i[0]=e[u++],i[1]=e[u++],i[2]=e[u++],u<e.length?(s[0]=e[u],s[1]=e[u+1],s[2]=e[u+2]):(s[0]=e[0],s[1]=e[1],s[2]=e[2]),i[c]<=t[c]?s[c]>t[c]&&Zl(o,c,i,s,t)>0&&++f:s[c]<=t[c]&&Zl(o,c,i,s,t)<0&&--f;return f===0?ln.OUTSIDE:ln.INSIDE}function PS(t,e,n){let r=t.length,a=[];e.getPoint(t[0],a),n[0]=a[0],n[1]=a[0],n[2]=a[1],n[3]=a[1],n[4]=a[2],n[5]=a[2];for(let s=1;s<r;s++)e.getPoint(t[s],a),$.addPoint(n,...a);let i=$.getLengths(n);return q(i,i)}function HS(t,e,n){n.length=3,n[0]=0,n[1]=0,n[2]=0;let r=[],a=[],i=[],s=[],o=[];e.getPoint(t[0],r),e.getPoint(t[1],a);for(let c=2;c<t.length;c++){e.getPoint(t[c],i),Le(i,a,s),Le(r,a,o);let f=[0,0,0];Ue(s,o,f),$t(n,f,n),[a,i]=[i,a]}return $e(n)}function IS(t,e,n=[0,0,0]){n[0]=0,n[1]=0,n[2]=0;let r=t.length,a=[];for(let i=0;i<r;i++)e.getPoint(t[i],a),n[0]+=a[0],n[1]+=a[1],n[2]+=a[2];return n[0]/=r,n[1]/=r,n[2]/=r,n}var jS={PolygonWithPointIntersectionState:ln,pointInPolygon:AS,getBounds:PS,getNormal:HS,computeCentroid:IS};function $S(t,e){e.classHierarchy.push("vtkPolygon");function n(){let o=[0,0,0],c=[0,0,0];e.normal=[0,0,0];let f=[...e.firstPoint.point],u=e.firstPoint;for(let g=0;g<e.pointCount;g++){Le(u.point,f,o),Le(u.next.point,f,c);let l=[0,0,0];Ue(o,c,l),$t(e.normal,l,e.normal),u=u.next}return $e(e.normal)}function r(o){let c=[0,0,0],f=[0,0,0],u=[0,0,0],g=[0,0,0];Le(o.point,o.previous.point,c),Le(o.next.point,o.point,f),Le(o.previous.point,o.next.point,u),Ue(c,f,g);let l=q(g,e.normal);if(l<=0)return-1;let h=ut(c)+ut(f)+ut(u);return h*h/l}function a(o){if(e.pointCount<=3)return!0;let c=o.previous,f=o.next,u=[0,0,0];Le(f.point,c.point,u);let g=[0,0,0];if(Ue(u,e.normal,g),$e(g),ut(g)===0)return!1;let l=gt.evaluate(g,c.point,f.next.point),h=l>1e-6?1:l<-1e-6?-1:0,y=h<0?1:0;for(let p=f.next.next;p.id!==c.id;p=p.next){let v=p.previous;l=gt.evaluate(g,c.point,p.point);let x=l>1e-6?1:l<-1e-6?-1:0;if(x!==h){if(y||(y=x<=0?1:0),Be.intersection(c.point,f.point,p.point,v.point,[0],[0])===yo.YES_INTERSECTION)return!1;h=x}}return y===1}function i(o,c){e.pointCount-=1;let f=o.previous,u=o.next;e.tris=e.tris.concat(o.point),e.tris=e.tris.concat(u.point),e.tris=e.tris.concat(f.point),f.next=u,u.previous=f,c.deleteById(f.id),c.deleteById(u.id);let g=r(f);g>0&&c.push(g,f);let l=r(u);l>0&&c.push(l,u),o.id===e.firstPoint.id&&(e.firstPoint=u)}function s(){n();let o=Xl.newInstance(),c=e.firstPoint;for(let f=0;f<e.pointCount;f++){let u=r(c);u>0&&o.push(u,c),c=c.next}for(;e.pointCount>2&&o.length()>0;)if(e.pointCount===o.length())i(o.pop(),o);else{let f=o.pop();a(f)&&i(f,o)}return e.pointCount<=2}t.triangulate=()=>e.firstPoint?s():null,t.setPoints=o=>{e.pointCount=o.length,e.firstPoint={id:0,point:o[0],next:null,previous:null};let c=e.firstPoint;for(let f=1;f<e.pointCount;f++)c.next={id:f,point:o[f],next:null,previous:c},c=c.next;e.firstPoint.previous=c,c.next=e.firstPoint},t.getPointArray=()=>e.tris}var KS={firstPoint:null,pointCount:0,tris:[]};function Ql(t,e,n={}){Object.assign(e,KS,n),O.obj(t,e),$S(t,e)}var XS=O.newInstance(Ql,"vtkPolygon"),Jl={newInstance:XS,extend:Ql,...jS};function wo(t,e,n,r){let a=n[0]-e[0],i=n[1]-e[1],s=n[2]-e[2],o=t[0]-e[0],c=t[1]-e[1],f=t[2]-e[2];r[0]=i*f-s*c,r[1]=s*o-a*f,r[2]=a*c-i*o}function ra(t,e,n,r){wo(t,e,n,r);let a=Math.sqrt(r[0]*r[0]+r[1]*r[1]+r[2]*r[2]);a!==0&&(r[0]/=a,r[1]/=a,r[2]/=a)}function eg(t){t[0]=-1,t[1]=1,t[2]=0,t[3]=-1,t[4]=0,t[5]=1}function YS(t,e,n,r,a,i,s=1e-6){let o=!1,c=[],f=[],u=[],g=[],l=[];ra(t,e,n,g),ra(r,a,i,l);let h=-q(g,t),y=-q(l,r),p=[q(l,t)+y,q(l,e)+y,q(l,n)+y];if(p[0]*p[1]>s&&p[0]*p[2]>s)return{intersect:!1,coplanar:o,pt1:c,pt2:f,surfaceId:u};let v=[q(g,r)+h,q(g,a)+h,q(g,i)+h];if(v[0]*v[1]>s&&v[0]*v[2]>s)return{intersect:!1,coplanar:o,pt1:c,pt2:f,surfaceId:u};if(Math.abs(g[0]-l[0])<1e-9&&Math.abs(g[1]-l[1])<1e-9&&Math.abs(g[2]-l[2])<1e-9&&Math.abs(h-y)<1e-9)return o=!0,{intersect:!1,coplanar:o,pt1:c,pt2:f,surfaceId:u};let x=[t,e,n],S=[r,a,i],T=q(g,l),d=(h-y*T)/(T*T-1),C=(y-h*T)/(T*T-1),w=[d*g[0]+C*l[0],d*g[1]+C*l[1],d*g[2]+C*l[2]],D=Ue(g,l,[]);$e(D);let m=0,M=0,R=[],E=[],V=50,N=50;for(let B=0;B<3;B++){let b=B,G=(B+1)%3,U=gt.intersectWithLine(x[b],x[G],r,l);U.intersection&&U.t>0-s&&U.t<1+s&&(U.t<1+s&&U.t>1-s&&(V=m),R[m++]=q(U.x,D)-q(w,D));let z=gt.intersectWithLine(S[b],S[G],t,g);z.intersection&&z.t>0-s&&z.t<1+s&&(z.t<1+s&&z.t>1-s&&(N=M),E[M++]=q(z.x,D)-q(w,D))}if(m>2){m--;let B=R[2];R[2]=R[V],R[V]=B}if(M>2){M--;let B=E[2];E[2]=E[N],E[N]=B}if(m!==2||M!==2)return{intersect:!1,coplanar:o,pt1:c,pt2:f,surfaceId:u};if(Number.isNaN(R[0])||Number.isNaN(R[1])||Number.isNaN(E[0])||Number.isNaN(E[1]))return{intersect:!1,coplanar:o,pt1:c,pt2:f,surfaceId:u};if(R[0]>R[1]){let B=R[1];R[1]=R[0],R[0]=B}if(E[0]>E[1]){let B=E[1];E[1]=E[0],E[0]=B}let _,L;return R[1]<E[0]||E[1]<R[0]?{intersect:!1,coplanar:o,pt1:c,pt2:f,surfaceId:u}:(R[0]<E[0]?R[1]<E[1]?(u[0]=2,u[1]=1,_=E[0],L=R[1]):(u[0]=2,u[1]=2,_=E[0],L=E[1]):R[1]<E[1]?(u[0]=1,u[1]=1,_=R[0],L=R[1]):(u[0]=1,u[1]=2,_=R[0],L=E[1]),Ia(w,D,_,c),Ia(w,D,L,f),{intersect:!0,coplanar:o,pt1:c,pt2:f,surfaceId:u})}var qS=[[0,1],[1,2],[2,0]],ZS=[1,2,4],QS=[[-1,-1,-1,-1,-1,-1,-1],[0,2,100,-1,-1,-1,-1],[1,0,101,-1,-1,-1,-1],[1,2,100,1,100,101,-1],[2,1,102,-1,-1,-1,-1],[0,1,102,102,100,0,-1],[0,101,2,2,101,102,-1],[100,101,102,-1,-1,-1,-1]],JS={computeNormalDirection:wo,computeNormal:ra,interpolationDerivs:eg,intersectWithTriangle:YS};function eC(t,e){e.classHierarchy.push("vtkTriangle"),t.getCellDimension=()=>2,t.intersectWithLine=(n,r,a,i,s)=>{let o={subId:0,t:Number.MAX_VALUE,intersect:0,betweenPoints:!1};s[2]=0;let c=[],f=a*a,u=[],g=[],l=[];e.points.getPoint(0,u),e.points.getPoint(1,g),e.points.getPoint(2,l);let h=[],y=[];if(ra(u,g,l,h),h[0]!==0||h[1]!==0||h[2]!==0){let T=gt.intersectWithLine(n,r,u,h);if(o.betweenPoints=T.betweenPoints,o.t=T.t,i[0]=T.x[0],i[1]=T.x[1],i[2]=T.x[2],!T.intersection)return s[0]=0,s[1]=0,o.intersect=0,o;let d=t.evaluatePosition(i,c,s,y);if(d.evaluation>=0)return d.dist2<=f?(o.intersect=1,o):(o.intersect=d.evaluation,o)}let p=ze(u,g),v=ze(g,l),x=ze(l,u);e.line||(e.line=Be.newInstance()),p>v&&p>x?(e.line.getPoints().setPoint(0,u),e.line.getPoints().setPoint(1,g)):v>x&&v>p?(e.line.getPoints().setPoint(0,g),e.line.getPoints().setPoint(1,l)):(e.line.getPoints().setPoint(0,l),e.line.getPoints().setPoint(1,u));let S=e.line.intersectWithLine(n,r,a,i,s);if(o.betweenPoints=S.betweenPoints,o.t=S.t,S.intersect){let T=[],d=[],C=[];for(let w=0;w<3;w++)T[w]=u[w]-l[w],d[w]=g[w]-l[w],C[w]=i[w]-l[w];return s[0]=q(C,T)/x,s[1]=q(C,d)/v,o.intersect=1,o}return s[0]=0,s[1]=0,o.intersect=0,o},t.evaluatePosition=(n,r,a,i)=>{let s={subId:0,dist2:0,evaluation:-1},o,c,f=[],u=[],g=[],l=[],h,y=[],p=[],v=[],x=0,S=0,T=[],d,C,w,D=[],m=[],M=[],R=[];s.subId=0,a[2]=0,e.points.getPoint(1,f),e.points.getPoint(2,u),e.points.getPoint(0,g),wo(f,u,g,l),gt.generalizedProjectPoint(n,f,l,R);let E=0;for(o=0;o<3;o++)l[o]<0?h=-l[o]:h=l[o],h>E&&(E=h,S=o);for(c=0,o=0;o<3;o++)o!==S&&(T[c++]=o);for(o=0;o<2;o++)y[o]=R[T[o]]-g[T[o]],p[o]=f[T[o]]-g[T[o]],v[o]=u[T[o]]-g[T[o]];if(x=Re(p,v),x===0)return a[0]=0,a[1]=0,s.evaluation=-1,s;if(a[0]=Re(y,v)/x,a[1]=Re(p,y)/x,i[0]=1-(a[0]+a[1]),i[1]=a[0],i[2]=a[1],i[0]>=0&&i[0]<=1&&i[1]>=0&&i[1]<=1&&i[2]>=0&&i[2]<=1)r&&(s.dist2=ze(R,n),r[0]=R[0],r[1]=R[1],r[2]=R[2]),s.evaluation=1;else{if(r)if(i[1]<0&&i[2]<0)for(d=ze(n,g),C=Be.distanceToLine(n,f,g,m),w=Be.distanceToLine(n,g,u,M),d<C?(s.dist2=d,D=g):(s.dist2=C,D=m),w<s.dist2&&(s.dist2=w,D=M),o=0;o<3;o++)r[o]=D[o];else if(i[2]<0&&i[0]<0)for(d=ze(n,f),C=Be.distanceToLine(n,f,g,m),w=Be.distanceToLine(n,f,u,M),d<C?(s.dist2=d,D=f):(s.dist2=C,D=m),w<s.dist2&&(s.dist2=w,D=M),o=0;o<3;o++)r[o]=D[o];else if(i[1]<0&&i[0]<0)for(d=ze(n,u),C=Be.distanceToLine(n,u,g,m),w=Be.distanceToLine(n,f,u,M),d<C?(s.dist2=d,D=u):(s.dist2=C,D=m),w<s.dist2&&(s.dist2=w,D=M),o=0;o<3;o++)r[o]=D[o];else i[0]<0?s.dist2=Be.distanceToLine(n,f,u,r).distance:i[1]<0?s.dist2=Be.distanceToLine(n,u,g,r).distance:i[2]<0&&(s.dist2=Be.distanceToLine(n,f,g,r).distance);s.evaluation=0}return s},t.evaluateLocation=(n,r,a)=>{let i=[],s=[],o=[];e.points.getPoint(0,i),e.points.getPoint(1,s),e.points.getPoint(2,o);let c=1-n[0]-n[1];for(let f=0;f<3;f++)r[f]=i[f]*c+s[f]*n[0]+o[f]*n[1];a[0]=c,a[1]=n[0],a[2]=n[1]},t.getParametricDistance=n=>{let r,a=0,i=[];i[0]=n[0],i[1]=n[1],i[2]=1-n[0]-n[1];for(let s=0;s<3;s++)i[s]<0?r=-i[s]:i[s]>1?r=i[s]-1:r=0,r>a&&(a=r);return a},t.derivatives=(n,r,a,i,s)=>{let o=e.points.getPoint(0),c=e.points.getPoint(1),f=e.points.getPoint(2),u=[],g=[],l=[],h=[];ra(o,c,f,u),Le(c,o,g),Le(f,o,h),Ue(u,g,l);let y=$e(g);if(y<=0||$e(l)<=0){for(let C=0;C<i;C++)for(let w=0;w<3;w++)s[C*i+w]=0;return}let p=[0,0],v=[y,0],x=[q(h,g),q(h,l)],S=new Array(6);eg(S);let T=[v[0]-p[0],v[1]-p[1],x[0]-p[0],x[1]-p[1]],d=O.newTypedArray(je.Float64Array,4);Ka(T,d,2);for(let C=0;C<i;C++){let w=0,D=0;for(let R=0;R<3;R++)w+=S[R]*a[i*R+C],D+=S[3+R]*a[i*R+C];let m=w*d[0]+D*d[1],M=w*d[2]+D*d[3];s[3*C]=m*g[0]+M*l[0],s[3*C+1]=m*g[1]+M*l[1],s[3*C+2]=m*g[2]+M*l[2]}},t.cellBoundary=(n,r,a)=>{let i=r[0]-r[1],s=.5*(1-r[0])-r[1],o=2*r[0]+r[1]-1;return i>=0&&s>=0?(a[0]=e.pointsIds[0],a[1]=e.pointsIds[1]):s<0&&o>=0?(a[0]=e.pointsIds[1],a[1]=e.pointsIds[2]):(a[0]=e.pointsIds[2],a[1]=e.pointsIds[0]),!(r[0]<0||r[1]<0||r[0]>1||r[1]>1||1-r[0]-r[1]<0)},t.clip=(n,r,a,i,s,o,c,f,u,g)=>{let l=0;for(let S=0;S<3;S++){let T=r.getComponent(S,0);(g&&T<=n||!g&&T>n)&&(l+=ZS[S])}let h=QS[l],y=[0,0,0],p=[0,0,0],v=[0,0,0],x=[0,0,0];for(let S=0;h[S]>-1;S+=3){x[0]=0,x[1]=0,x[2]=0;for(let T=0;T<3;T++){let d=h[S+T];if(d>=100){let C=d-100;e.points.getPoint(C,y);let{inserted:w,id:D}=a.insertUniquePoint(y);x[T]=D,w&&o.passData(s,e.pointsIds[C],D)}else{let C=qS[d],w=C[0],D=C[1],m=r.getComponent(C[1],0)-r.getComponent(C[0],0);m<=0&&(w=C[1],D=C[0],m=-m);let M=m===0?0:(n-r.getComponent(w,0))/m;e.points.getPoint(w,p),e.points.getPoint(D,v);for(let V=0;V<3;V++)y[V]=p[V]+M*(v[V]-p[V]);let{inserted:R,id:E}=a.insertUniquePoint(y);x[T]=E,R&&o.interpolateData(s,e.pointsIds[w],e.pointsIds[D],E,M)}}if(!(x[0]===x[1]||x[0]===x[2]||x[1]===x[2])){let T=i.insertNextCell(x);u.passData(c,f,T)}}}}var tC={};function tg(t,e,n={}){Object.assign(e,tC,n),pt.extend(t,e,n),eC(t,e)}var nC=O.newInstance(tg,"vtkTriangle"),vr={newInstance:nC,extend:tg,...JS};function ng(){return{intersected:!1,subId:-1,x:[0,0,0],pCoords:[0,0,0],t:-1}}function rC(t,e){e.classHierarchy.push("vtkQuad"),t.getCellDimension=()=>2,t.getCellType=()=>ve.VTK_QUAD,t.getNumberOfEdges=()=>4,t.getNumberOfFaces=()=>0,t.intersectWithLine=(n,r,a,i,s)=>{let o={subId:0,t:Number.MAX_VALUE,intersect:0,betweenPoints:!1},c,f=e.points.getPoint(0,[]),u=e.points.getPoint(1,[]),g=e.points.getPoint(2,[]),l=e.points.getPoint(3,[]),h=ze(f,g),y=ze(u,l);if(h===y){let w,D=0,m=0;for(let M=0;M<4;M++)w=e.pointsIds[M],w>D&&(D=w,m=M);m===0||m===2?c=0:c=1}else h<y?c=0:c=1;let p=null;e.triangle?p=e.triangle.getPoints():(e.triangle=vr.newInstance(),p=Qt.newInstance(),p.setNumberOfPoints(3),e.triangle.initialize(p));let v,x=ng(),S,T=ng(),d,C;switch(c){case 0:p.setPoint(0,...f),p.setPoint(1,...u),p.setPoint(2,...g),v=e.triangle.intersectWithLine(n,r,a,x.x,x.pCoords),p.setPoint(0,...g),p.setPoint(1,...l),p.setPoint(2,...f),S=e.triangle.intersectWithLine(n,r,a,T.x,T.pCoords),d=v.intersect&&S.intersect?v.t<=S.t:v.intersect,C=v.intersect&&S.intersect?S.t<v.t:S.intersect,d?(o=v,i[0]=x.x[0],i[1]=x.x[1],i[2]=x.x[2],s[0]=x.pCoords[0]+x.pCoords[1],s[1]=x.pCoords[1],s[2]=x.pCoords[2]):C&&(o=S,i[0]=T.x[0],i[1]=T.x[1],i[2]=T.x[2],s[0]=1-(T.pCoords[0]+T.pCoords[1]),s[1]=1-T.pCoords[1],s[2]=T.pCoords[2]);break;case 1:p.setPoint(0,...f),p.setPoint(1,...u),p.setPoint(2,...l),v=e.triangle.intersectWithLine(n,r,a,x.x,x.pCoords),p.setPoint(0,...g),p.setPoint(1,...l),p.setPoint(2,...u),S=e.triangle.intersectWithLine(n,r,a,T.x,T.pCoords),d=v.intersect&&S.intersect?v.t<=S.t:v.intersect,C=v.intersect&&S.intersect?S.t<v.t:S.intersect,d?(o=v,i[0]=x.x[0],i[1]=x.x[1],i[2]=x.x[2],s[0]=x.pCoords[0],s[1]=x.pCoords[1],s[2]=x.pCoords[2]):C&&(o=S,i[0]=T.x[0],i[1]=T.x[1],i[2]=T.x[2],s[0]=1-T.pCoords[0],s[1]=1-T.pCoords[1],s[2]=T.pCoords[2]);break;default:break}return o},t.interpolationFunctions=(n,r)=>{let a=1-n[0],i=1-n[1];r[0]=a*i,r[1]=n[0]*i,r[2]=n[0]*n[1],r[3]=a*n[1]},t.evaluateLocation=(n,r,a)=>{let i=[];t.interpolationFunctions(n,a),r[0]=0,r[1]=0,r[2]=0;for(let s=0;s<4;s++){e.points.getPoint(s,i);for(let o=0;o<3;o++)r[o]+=i[o]*a[s]}}}var aC={};function rg(t,e,n={}){Object.assign(e,aC,n),pt.extend(t,e,n),rC(t,e)}var iC=O.newInstance(rg,"vtkQuad"),ag={newInstance:iC,extend:rg};var{vtkErrorMacro:ig}=O;function sC(t){return()=>ig(`vtkTriangleStrip.${t} - NOT IMPLEMENTED`)}function oC(t,e){if(!Array.isArray(t)||t.length<3){ig("decomposeStrip - Invalid points array");return}let n=t[0],r=t[1];for(let a=0;a<t.length-2;a++){let i=t[a+2];a%2?e.insertNextCell([r,n,i]):e.insertNextCell([n,r,i]),n=r,r=i}}var cC={decomposeStrip:oC};function fC(t,e){e.classHierarchy.push("vtkTriangleStrip");let n=t.initialize;t.initialize=(r,a)=>{e.triangle.initialize(r,a),n(r,a)},t.getCellType=()=>ve.VTK_TRIANGLE_STRIP,t.getCellDimension=()=>2,t.getNumberOfEdges=()=>e.pointsIds.length,t.getNumberOfFaces=()=>0,t.evaluatePosition=(r,a,i,s,o)=>{let c=[0,0,0],f=Number.MAX_VALUE,u=0,g=[],l=[],h=[];i[2]=0,l[0]=0,l[1]=0,l[2]=0;let y=e.triangle.getPoints();y.setNumberOfPoints(3);let p=e.triangle.getPointsIds().length;for(let v=0;v<p;v++)o[v]=0;for(let v=0;v<p-2;v++){let x=[];y.getPoint(v,x);let S=[];y.getPoint(v+1,S);let T=[];y.getPoint(v+2,T),y.setData(Float32Array.from([...x,...S,...T]),3);let d=e.triangle.evaluatePosition(r,h,c,g),C=d.dist2;d.evaluation>=0&&(C<f||C===f&&u===0)&&(u=d,a&&(a[0]=h[0],a[1]=h[1],a[2]=h[2]),i[0]=c[0],i[1]=c[1],f=C,l[0]=g[0],l[1]=g[1],l[2]=g[2])}return s[0]=f,o[0]=l[0],o[1]=l[1],o[2]=l[2],u},t.evaluateLocation=(r,a,i,s)=>{let o=[[0,1,2],[1,0,2]],c=r%2,f=e.pointsIds.length;for(let h=0;h<f;h++)s[h]=0;s[r]=1-a[0]-a[1],s[r+1]=a[0],s[r+2]=a[1];let u=[];e.points.getPoint(r+o[c][0],u);let g=[];e.points.getPoint(r+o[c][1],g);let l=[];e.points.getPoint(r+o[c][2],l);for(let h=0;h<3;h++)i[h]=u[h]*s[r]+g[h]*s[r+1]+l[h]*s[r+2]},t.cellBoundary=(r,a,i)=>{let s=[[0,1,2],[1,0,2]],o=r%2,c=e.triangle.getPointsIds();return c[0]=e.pointsIds[s[o][0]],c[1]=e.pointsIds[s[o][1]],c[2]=e.pointsIds[s[o][2]],e.triangle.cellBoundary(0,a,i)},t.getEdge=r=>{let a,i,s=e.pointsIds.length;return r===0?(a=0,i=1):r===s-1?(a=r-1,i=r):(a=r-1,i=r+1),e.line.getPointsIds()[0]=e.pointsIds[a],e.line.getPointsIds()[1]=e.pointsIds[i],e.line.getPoints().setPoint(0,e.points.getPoint(a)),e.line.getPoints().setPoint(1,e.points.getPoint(i)),e.line},t.intersectWithLine=(r,a,i,s,o)=>{let c=e.pointsIds.length-2,f=e.triangle.getPoints();f.setNumberOfPoints(3);for(let u=0;u<c;u++){let g=[];e.points.getPoint(e.pointsIds[u],g);let l=[];e.points.getPoint(e.pointsIds[u+1],l);let h=[];e.points.getPoint(e.pointsIds[u+2],h),f.setData(Float32Array.from([...g,...l,...h]),3);let y=e.triangle.intersectWithLine(r,a,i,s,o);if(y.intersect)return y}return!1},t.triangulate=()=>{let r=e.points.getNumberOfPoints()-2;e.tris=new Array(3*r);let a=[[0,1,2],[1,0,2]];for(let i=0;i<r;i++){let s=i%2;for(let o=0;o<3;o++)e.tris[i*3+o]=i+a[s][o]}return!0},t.getPointArray=()=>e.tris,t.derivatives=(r,a,i,s,o)=>{let c=[];e.points.getPoint(r,c);let f=[];e.points.getPoint(r+1,f);let u=[];e.points.getPoint(r+2,u);let g=e.triangle.getPoints();g.setPoint(0,...c),g.setPoint(1,...f),g.setPoint(2,...u),e.triangle.derivatives(0,a,i,s,o)},t.getParametricCenter=r=>(r[0]=.333333,r[1]=.333333,r[2]=0,Math.floor((e.pointsIds.length-2)/2)),t.contour=(r,a,i,s,o,c,f,u,g,l,h)=>sC("contour")(),t.clip=(r,a,i,s,o,c,f,u,g,l)=>{let h=e.points.getNumberOfPoints()-2,y=new Float32Array(3),p=a.newClone();p.setNumberOfComponents(a.getNumberOfComponents()),p.setData(y,a.getNumberOfComponents());let v=e.triangle.getPoints();v.setNumberOfPoints(3);let x=e.triangle.getPointsIds(),S=[0,0,0];for(let T=0;T<h;T++){let d=T,C=T+1,w=T+2;T%2&&(d=T+2,C=T+1,w=T),v.setPoint(0,...e.points.getPoint(d,S)),v.setPoint(1,...e.points.getPoint(C,S)),v.setPoint(2,...e.points.getPoint(w,S)),x[0]=e.pointsIds[d],x[1]=e.pointsIds[C],x[2]=e.pointsIds[w],y[0]=a.getComponent(d,0),y[1]=a.getComponent(C,0),y[2]=a.getComponent(w,0),e.triangle.clip(r,p,i,s,o,c,f,u,g,l)}}}var uC={line:null,triangle:null,tris:null};function sg(t,e,n={}){Object.assign(e,uC,n),pt.extend(t,e,n),e.line||(e.line=Be.newInstance()),e.triangle||(e.triangle=vr.newInstance()),fC(t,e)}var lC=O.newInstance(sg,"vtkTriangleStrip"),og={newInstance:lC,extend:sg,...cC};var Wn=["verts","lines","polys","strips"];var{vtkWarningMacro:cg}=O,gC={[ve.VTK_LINE]:Be,[ve.VTK_QUAD]:ag,[ve.VTK_POLY_LINE]:Be,[ve.VTK_TRIANGLE]:vr,[ve.VTK_TRIANGLE_STRIP]:og,[ve.VTK_POLY_LINE]:$l,[ve.VTK_POLYGON]:Jl};function pC(t,e){e.classHierarchy.push("vtkPolyData");function n(o){return o.replace(/(?:^\w|[A-Z]|\b\w)/g,c=>c.toUpperCase()).replace(/\s+/g,"")}function r(){e.cells=void 0,e.links=void 0}Wn.forEach(o=>{t[`getNumberOf${n(o)}`]=()=>e[o].getNumberOfCells(),e[o]?e[o]=et(e[o]):e[o]=be.newInstance(),e[`_on${n(o)}Changed`]=r}),t.getNumberOfCells=()=>Wn.reduce((o,c)=>o+e[c].getNumberOfCells(),0);let a=t.shallowCopy;t.shallowCopy=(o,c=!1)=>{a(o,c),Wn.forEach(f=>{e[f]=be.newInstance(),e[f].shallowCopy(o.getReferenceByName(f))})};let i=t.getMTime;t.getMTime=()=>Wn.reduce((o,c)=>Math.max(o,e[c]?.getMTime()??o),i());let s=t.initialize;t.initialize=()=>(Wn.forEach(o=>e[o]?.initialize()),r(),s()),t.buildCells=()=>{let o=t.getNumberOfVerts(),c=t.getNumberOfLines(),f=t.getNumberOfPolys(),u=t.getNumberOfStrips(),g=o+c+f+u,l=new Uint8Array(g),h=l,y=new Uint32Array(g),p=y;if(o){let v=0;e.verts.getCellSizes().forEach((x,S)=>{p[S]=v,h[S]=x>1?ve.VTK_POLY_VERTEX:ve.VTK_VERTEX,v+=x+1}),p=p.subarray(o),h=h.subarray(o)}if(c){let v=0;e.lines.getCellSizes().forEach((x,S)=>{p[S]=v,h[S]=x>2?ve.VTK_POLY_LINE:ve.VTK_LINE,x===1&&cg("Building VTK_LINE ",S," with only one point, but VTK_LINE needs at least two points. Check the input."),v+=x+1}),p=p.subarray(c),h=h.subarray(c)}if(f){let v=0;e.polys.getCellSizes().forEach((x,S)=>{switch(p[S]=v,x){case 3:h[S]=ve.VTK_TRIANGLE;break;case 4:h[S]=ve.VTK_QUAD;break;default:h[S]=ve.VTK_POLYGON;break}x<3&&cg("Building VTK_TRIANGLE ",S," with less than three points, but VTK_TRIANGLE needs at least three points. Check the input."),v+=x+1}),p+=p.subarray(f),h+=h.subarray(f)}if(u){let v=0;h.fill(ve.VTK_TRIANGLE_STRIP,0,u),e.strips.getCellSizes().forEach((x,S)=>{p[S]=v,v+=x+1})}e.cells=Bl.newInstance(),e.cells.setCellTypes(g,l,y)},t.buildLinks=(o=0)=>{e.cells==null&&t.buildCells(),e.links=Fl.newInstance(),o>0?e.links.allocate(o):e.links.allocate(t.getPoints().getNumberOfPoints()),e.links.buildLinks(t)},t.getCellType=o=>e.cells.getCellType(o),t.getCellPoints=o=>{let c=t.getCellType(o),f=null;switch(c){case ve.VTK_VERTEX:case ve.VTK_POLY_VERTEX:f=e.verts;break;case ve.VTK_LINE:case ve.VTK_POLY_LINE:f=e.lines;break;case ve.VTK_TRIANGLE:case ve.VTK_QUAD:case ve.VTK_POLYGON:f=e.polys;break;case ve.VTK_TRIANGLE_STRIP:f=e.strips;break;default:return f=null,{type:0,cellPointIds:null}}let u=e.cells.getCellLocation(o);return{cellType:c,cellPointIds:f.getCell(u)}},t.getPointCells=o=>e.links.getCells(o),t.getCellEdgeNeighbors=(o,c,f)=>{let u=e.links.getLink(c),g=e.links.getLink(f);return u.cells.filter(l=>l!==o&&g.cells.indexOf(l)!==-1)},t.getCell=(o,c=null)=>{let f=t.getCellPoints(o),u=c||gC[f.cellType].newInstance();return u.initialize(t.getPoints(),f.cellPointIds),u},t.getMaxCellSize=()=>Wn.reduce((o,c)=>Math.max(o,e[c]?.getMaxCellSize?.()??0),0)}var hC={};function fg(t,e,n={}){Object.assign(e,hC,n),Il.extend(t,e,n),O.get(t,e,["cells","links"]),O.setGet(t,e,["verts","lines","polys","strips"]),pC(t,e)}var vC=O.newInstance(fg,"vtkPolyData"),We={newInstance:vC,extend:fg};var dC={DISPLAY:0,WORLD:1},Oo={CoordinateSystem:dC};var{CoordinateSystem:Ro}=Oo;function ug(t){return()=>O.vtkErrorMacro(`vtkProp::${t} - NOT IMPLEMENTED`)}function TC(t,e){e.classHierarchy.push("vtkProp"),t.getMTime=()=>{let n=e.mtime;for(let r=0;r<e.textures.length;++r){let a=e.textures[r].getMTime();a>n&&(n=a)}return n},t.processSelectorPixelBuffers=(n,r)=>{},t.getNestedProps=()=>null,t.getActors=()=>[],t.getActors2D=()=>[],t.getVolumes=()=>[],t.pick=ug("pick"),t.hasKey=ug("hasKey"),t.getNestedVisibility=()=>e.visibility&&(!e._parentProp||e._parentProp.getNestedVisibility()),t.getNestedPickable=()=>e.pickable&&(!e._parentProp||e._parentProp.getNestedPickable()),t.getNestedDragable=()=>e.dragable&&(!e._parentProp||e._parentProp.getNestedDragable()),t.getRedrawMTime=()=>e.mtime,t.setEstimatedRenderTime=n=>{e.estimatedRenderTime=n,e.savedEstimatedRenderTime=n},t.restoreEstimatedRenderTime=()=>{e.estimatedRenderTime=e.savedEstimatedRenderTime},t.addEstimatedRenderTime=n=>{e.estimatedRenderTime+=n},t.setAllocatedRenderTime=n=>{e.allocatedRenderTime=n,e.savedEstimatedRenderTime=e.estimatedRenderTime,e.estimatedRenderTime=0},t.getSupportsSelection=()=>!1,t.getTextures=()=>e.textures,t.hasTexture=n=>e.textures.indexOf(n)!==-1,t.addTexture=n=>{n&&!t.hasTexture(n)&&(e.textures=e.textures.concat(n),t.modified())},t.removeTexture=n=>{let r=e.textures.filter(a=>a!==n);e.textures.length!==r.length&&(e.textures=r,t.modified())},t.removeAllTextures=()=>{e.textures=[],t.modified()},t.setCoordinateSystemToWorld=()=>t.setCoordinateSystem(Ro.WORLD),t.setCoordinateSystemToDisplay=()=>t.setCoordinateSystem(Ro.DISPLAY)}var xC={allocatedRenderTime:10,coordinateSystem:Ro.WORLD,dragable:!0,estimatedRenderTime:0,paths:null,pickable:!0,renderTimeMultiplier:1,savedEstimatedRenderTime:0,textures:[],useBounds:!0,visibility:!0};function lg(t,e,n={}){Object.assign(e,xC,n),O.obj(t,e),O.get(t,e,["estimatedRenderTime","allocatedRenderTime"]),O.setGet(t,e,["_parentProp","coordinateSystem","dragable","pickable","renderTimeMultiplier","useBounds","visibility"]),O.moveToProtected(t,e,["parentProp"]),TC(t,e)}var yC=O.newInstance(lg,"vtkProp"),gi={newInstance:yC,extend:lg,...Oo};var mC=1e-6;function SC(t,e){e.classHierarchy.push("vtkProp3D"),t.addPosition=i=>{e.position=e.position.map((s,o)=>s+i[o]),t.modified()},t.getOrientationWXYZ=()=>{let i=_e.create();F.getRotation(i,e.rotation);let s=new Float64Array(3);return[jt(_e.getAxisAngle(s,i)),s[0],s[1],s[2]]},t.getOrientationQuaternion=(i=[])=>F.getRotation(i,e.rotation),t.rotateX=i=>{i!==0&&(F.rotateX(e.rotation,e.rotation,Me(i)),t.modified())},t.rotateY=i=>{i!==0&&(F.rotateY(e.rotation,e.rotation,Me(i)),t.modified())},t.rotateZ=i=>{i!==0&&(F.rotateZ(e.rotation,e.rotation,Me(i)),t.modified())},t.rotateWXYZ=(i,s,o,c)=>{if(i===0||s===0&&o===0&&c===0)return;let f=Me(i),u=_e.create();_e.setAxisAngle(u,[s,o,c],f);let g=new Float64Array(16);F.fromQuat(g,u),F.multiply(e.rotation,e.rotation,g),t.modified()},t.rotateQuaternion=i=>{if(Math.abs(i[3])>=1-mC)return;let s=F.fromQuat(new Float64Array(16),i);F.multiply(e.rotation,e.rotation,s),t.modified()},t.setOrientation=(i,s,o)=>i===e.orientation[0]&&s===e.orientation[1]&&o===e.orientation[2]?!1:(e.orientation=[i,s,o],F.identity(e.rotation),t.rotateZ(o),t.rotateX(i),t.rotateY(s),t.modified(),!0),t.setOrientationFromQuaternion=i=>{let s=F.create();return F.fromQuat(s,i),cn(s,e.rotation)?!1:(e.rotation=s,t.modified(),!0)},t.setUserMatrix=i=>cn(e.userMatrix,i)?!1:(F.copy(e.userMatrix,i),t.modified(),!0),t.getMatrix=()=>(t.computeMatrix(),e.matrix),t.computeMatrix=()=>{if(t.getMTime()>e.matrixMTime.getMTime()){F.identity(e.matrix),e.userMatrix&&F.multiply(e.matrix,e.matrix,e.userMatrix),F.translate(e.matrix,e.matrix,e.origin),F.translate(e.matrix,e.matrix,e.position),F.multiply(e.matrix,e.matrix,e.rotation),F.scale(e.matrix,e.matrix,e.scale),F.translate(e.matrix,e.matrix,[-e.origin[0],-e.origin[1],-e.origin[2]]),F.transpose(e.matrix,e.matrix),e.isIdentity=!0;for(let i=0;i<4;++i)for(let s=0;s<4;++s)(i===s?1:0)!==e.matrix[i+s*4]&&(e.isIdentity=!1);e.matrixMTime.modified()}},t.computeBounds=()=>{if(e.mapper===null){$.reset(e.bounds);return}let i=e.mapper.getBounds();if(!i||i.length!==6||!$.isValid(i)){e.mapperBounds=i,$.reset(e.bounds),e.boundsMTime.modified();return}if(!e.mapperBounds||!i.every((s,o)=>i[o]===e.mapperBounds[o])||t.getMTime()>e.boundsMTime.getMTime()){O.vtkDebugMacro("Recomputing bounds..."),e.mapperBounds=i,t.computeMatrix();let s=new Float64Array(16);F.transpose(s,e.matrix),$.transformBounds(i,s,e.bounds),e.boundsMTime.modified()}};let n=t.getBounds;t.getBounds=()=>(t.computeBounds(),n());let r=t.getBoundsByReference;t.getBoundsByReference=()=>(t.computeBounds(),r()),t.getCenter=()=>$.getCenter(t.getBoundsByReference()),t.getLength=()=>$.getLength(t.getBoundsByReference()),t.getXRange=()=>$.getXRange(t.getBoundsByReference()),t.getYRange=()=>$.getYRange(t.getBoundsByReference()),t.getZRange=()=>$.getZRange(t.getBoundsByReference()),t.getUserMatrix=()=>e.userMatrix;function a(){t.computeMatrix()}t.onModified(a),t.getProperty=(i=0)=>(e.properties[i]==null&&(e.properties[i]=t.makeProperty?.()),e.properties[i]),t.getProperties=()=>(e.properties.length===0&&(e.properties[0]=t.makeProperty?.()),e.properties),t.setProperty=(i,s)=>{let[o,c]=Number.isInteger(i)?[i,s]:[0,i];return e.properties[o]===c?!1:(e.properties[o]=c,!0)},t.getMTime=()=>{let i=e.mtime;return e.properties.forEach(s=>{if(s!==null){let o=s.getMTime();i=o>i?o:i}}),i}}var CC={bounds:[...$.INIT_BOUNDS],origin:[0,0,0],position:[0,0,0],orientation:[0,0,0],rotation:null,scale:[1,1,1],properties:[],userMatrix:null,userMatrixMTime:null,cachedProp3D:null,isIdentity:!0,matrixMTime:null};function gg(t,e,n={}){Object.assign(e,CC,n),gi.extend(t,e,n),e.matrixMTime={},O.obj(e.matrixMTime),O.get(t,e,["isIdentity"]),O.getArray(t,e,["orientation"]),O.setGetArray(t,e,["origin","position","scale"],3),O.setGet(t,e,["properties"]),O.getArray(t,e,["bounds"],6),e.matrix=F.identity(new Float64Array(16)),e.rotation=F.identity(new Float64Array(16)),e.userMatrix=F.identity(new Float64Array(16)),e.transform=null,SC(t,e)}var wC=O.newInstance(gg,"vtkProp3D"),pi={newInstance:wC,extend:gg};var pg={FLAT:0,GOURAUD:1,PHONG:2,PBR:3},Ke={POINTS:0,WIREFRAME:1,SURFACE:2},OC=pg,Mo={Shading:pg,Representation:Ke,Interpolation:OC};var{Representation:aa,Interpolation:dr}=Mo;function hg(t){return()=>O.vtkErrorMacro(`vtkProperty::${t} - NOT IMPLEMENTED`)}function RC(t,e){e.classHierarchy.push("vtkProperty"),t.setColor=(n,r,a)=>{Array.isArray(n)?(e.color[0]!==n[0]||e.color[1]!==n[1]||e.color[2]!==n[2])&&(e.color[0]=n[0],e.color[1]=n[1],e.color[2]=n[2],t.modified()):(e.color[0]!==n||e.color[1]!==r||e.color[2]!==a)&&(e.color[0]=n,e.color[1]=r,e.color[2]=a,t.modified()),t.setDiffuseColor(e.color),t.setAmbientColor(e.color),t.setSpecularColor(e.color)},t.computeCompositeColor=hg("ComputeCompositeColor"),t.getColor=()=>{let n=0;e.ambient+e.diffuse+e.specular>0&&(n=1/(e.ambient+e.diffuse+e.specular));for(let r=0;r<3;r++)e.color[r]=n*(e.ambient*e.ambientColor[r]+e.diffuse*e.diffuseColor[r]+e.specular*e.specularColor[r]);return[].concat(e.color)},t.addShaderVariable=hg("AddShaderVariable"),t.setInterpolationToFlat=()=>t.setInterpolation(dr.FLAT),t.setInterpolationToGouraud=()=>t.setInterpolation(dr.GOURAUD),t.setInterpolationToPhong=()=>t.setInterpolation(dr.PHONG),t.setInterpolationToPBR=()=>t.setInterpolation(dr.PBR),t.getInterpolationAsString=()=>O.enumToString(dr,e.interpolation),t.setRepresentationToWireframe=()=>t.setRepresentation(aa.WIREFRAME),t.setRepresentationToSurface=()=>t.setRepresentation(aa.SURFACE),t.setRepresentationToPoints=()=>t.setRepresentation(aa.POINTS),t.getRepresentationAsString=()=>O.enumToString(aa,e.representation)}var MC={color:[1,1,1],ambientColor:[1,1,1],diffuseColor:[1,1,1],specularColor:[1,1,1],edgeColor:[0,0,0],ambient:0,diffuse:1,metallic:0,roughness:.6,normalStrength:1,emission:1,baseIOR:1.45,specular:0,specularPower:1,opacity:1,edgeOpacity:1,interpolation:dr.GOURAUD,representation:aa.SURFACE,edgeVisibility:!1,backfaceCulling:!1,frontfaceCulling:!1,pointSize:1,lineWidth:1,lighting:!0,anisotropy:0,anisotropyRotation:0,coatStrength:0,coatRoughness:0,coatColor:[1,1,1],coatF0:.04,coatNormalStrength:1,displacementFactor:1,emissiveStrength:1,occlusionStrength:1,transmissionFactor:0,alphaCutoff:0,alphaMode:0,thicknessFactor:0,attenuationDistance:1/0,attenuationColor:[1,1,1],iridescenceFactor:0,iridescenceIOR:1.3,iridescenceThicknessMinimum:100,iridescenceThicknessMaximum:400,sheenColorFactor:[0,0,0],sheenRoughnessFactor:0,diffuseTransmissionFactor:0,diffuseTransmissionColorFactor:[1,1,1],dispersion:0,specularFactor:1,specularColorFactor:[1,1,1],textureTransforms:{},shading:!1,materialName:null,ORMTexture:null,RMTexture:null,anisotropyTexture:null,coatTexture:null,coatRoughnessTexture:null,coatNormalTexture:null,displacementTexture:null,transmissionTexture:null,thicknessTexture:null,iridescenceTexture:null,iridescenceThicknessTexture:null,sheenColorTexture:null,sheenRoughnessTexture:null,diffuseTransmissionTexture:null,diffuseTransmissionColorTexture:null,specularTexture:null,specularColorTexture:null};function vg(t,e,n={}){Object.assign(e,MC,n),O.obj(t,e),O.setGet(t,e,["lighting","interpolation","ambient","diffuse","metallic","roughness","normalStrength","emission","baseIOR","specular","specularPower","opacity","edgeOpacity","edgeVisibility","lineWidth","pointSize","backfaceCulling","frontfaceCulling","representation","diffuseTexture","metallicTexture","roughnessTexture","normalTexture","ambientOcclusionTexture","emissionTexture","anisotropy","anisotropyRotation","coatStrength","coatRoughness","coatF0","coatNormalStrength","displacementFactor","emissiveStrength","occlusionStrength","transmissionFactor","alphaCutoff","alphaMode","thicknessFactor","attenuationDistance","iridescenceFactor","iridescenceIOR","iridescenceThicknessMinimum","iridescenceThicknessMaximum","sheenRoughnessFactor","diffuseTransmissionFactor","dispersion","ORMTexture","RMTexture","anisotropyTexture","coatTexture","coatRoughnessTexture","coatNormalTexture","displacementTexture","transmissionTexture","thicknessTexture","iridescenceTexture","iridescenceThicknessTexture","sheenColorTexture","sheenRoughnessTexture","diffuseTransmissionTexture","diffuseTransmissionColorTexture","specularFactor","specularTexture","specularColorTexture"]),O.setGetArray(t,e,["ambientColor","specularColor","diffuseColor","edgeColor","coatColor","attenuationColor","sheenColorFactor","diffuseTransmissionColorFactor","specularColorFactor"],3),t.setTextureTransform=(r,a)=>{e.textureTransforms||(e.textureTransforms={}),e.textureTransforms[r]={...a},t.modified()},t.setTextureTransforms=r=>{e.textureTransforms=r||{},t.modified()},t.getTextureTransform=r=>e.textureTransforms?.[r]||null,t.getTextureTransforms=()=>e.textureTransforms||{},RC(t,e)}var EC=O.newInstance(vg,"vtkProperty"),_t={newInstance:EC,extend:vg,...Mo};function DC(t,e){e.classHierarchy.push("vtkActor");let n={...t};t.getActors=()=>[t],t.getIsOpaque=()=>{if(e.forceOpaque)return!0;if(e.forceTranslucent)return!1;e.properties[0]||t.getProperty();let r=e.properties[0].getOpacity()>=1;return r=r&&(!e.texture||!e.texture.isTranslucent()),r=r&&(!e.mapper||e.mapper.getIsOpaque()),r},t.hasTranslucentPolygonalGeometry=()=>e.mapper===null?!1:(e.properties[0]||t.getProperty(),!t.getIsOpaque()),t.makeProperty=_t.newInstance,t.getMTime=()=>{let r=n.getMTime();if(e.backfaceProperty!==null){let a=e.backfaceProperty.getMTime();r=a>r?a:r}return r},t.getRedrawMTime=()=>{let r=e.mtime;if(e.mapper!==null){let a=e.mapper.getMTime();r=a>r?a:r,e.mapper.getInput()!==null&&(e.mapper.getInputAlgorithm().update(),a=e.mapper.getInput().getMTime(),r=a>r?a:r)}return r},t.getSupportsSelection=()=>e.mapper?e.mapper.getSupportsSelection():!1,t.processSelectorPixelBuffers=(r,a)=>{e.mapper&&e.mapper.processSelectorPixelBuffers&&e.mapper.processSelectorPixelBuffers(r,a)}}var VC={mapper:null,backfaceProperty:null,forceOpaque:!1,forceTranslucent:!1};function dg(t,e,n={}){Object.assign(e,VC,n),pi.extend(t,e,n),e.boundsMTime={},O.obj(e.boundsMTime),O.setGet(t,e,["backfaceProperty","forceOpaque","forceTranslucent","mapper"]),DC(t,e)}var LC=O.newInstance(dg,"vtkActor"),gn={newInstance:LC,extend:dg};var _C={DEFAULT:0,MAP_SCALARS:1,DIRECT_SCALARS:2},FC={DEFAULT:0,USE_POINT_DATA:1,USE_CELL_DATA:2,USE_POINT_FIELD_DATA:3,USE_CELL_FIELD_DATA:4,USE_FIELD_DATA:5},NC={BY_ID:0,BY_NAME:1},BC={NONE:0,BASE_COLOR:1,ALPHA:2,NORMAL:3,GEOMETRY_NORMAL:4,TEXTURE_COORDINATES_0:5,OCCLUSION:6,EMISSIVE:7,METALLIC:10,ROUGHNESS:11,CLEARCOAT_FACTOR:20,CLEARCOAT_ROUGHNESS:21,CLEARCOAT_NORMAL:22,SHEEN_COLOR:30,SHEEN_ROUGHNESS:31,SPECULAR_FACTOR:40,SPECULAR_COLOR:41,TRANSMISSION_FACTOR:50,VOLUME_THICKNESS:51,IRIDESCENCE_FACTOR:60,IRIDESCENCE_THICKNESS:61,ANISOTROPIC_STRENGTH:70,ANISOTROPIC_DIRECTION:71,DIFFUSE_TRANSMISSION_FACTOR:80,DIFFUSE_TRANSMISSION_COLOR:81,F0:90},Tr={ColorMode:_C,GetArray:NC,ScalarMode:FC,DebugChannel:BC};var{vtkErrorMacro:Tg}=O,hi=new Float64Array(16),vi=new Float64Array(4);function xg(t,e){let n=t.getNormalByReference(),r=t.getOriginByReference();return e[0]=n[0],e[1]=n[1],e[2]=n[2],e[3]=-(n[0]*r[0]+n[1]*r[1]+n[2]*r[2]),e}function GC(t,e){e.classHierarchy.push("vtkAbstractMapper"),t.update=()=>{t.getInputData()},t.addClippingPlane=n=>n.isA("vtkPlane")?e.clippingPlanes.includes(n)?!1:(e.clippingPlanes.push(n),t.modified(),!0):!1,t.getNumberOfClippingPlanes=()=>e.clippingPlanes.length,t.removeAllClippingPlanes=()=>e.clippingPlanes.length===0?!1:(e.clippingPlanes.length=0,t.modified(),!0),t.removeClippingPlane=n=>{let r=e.clippingPlanes.indexOf(n);return r===-1?!1:(e.clippingPlanes.splice(r,1),t.modified(),!0)},t.getClippingPlanes=()=>e.clippingPlanes,t.getClippingPlanesMTime=()=>{let n=0;for(let r=0;r<e.clippingPlanes.length;r++)n=Math.max(n,e.clippingPlanes[r].getMTime());return n},t.setClippingPlanes=n=>{if(n)if(!Array.isArray(n))t.addClippingPlane(n);else{let r=n.length;for(let a=0;a<r&&a<6;a++)t.addClippingPlane(n[a])}},t.getClippingPlaneInCoords=(n,r,a)=>{if(r<0||r>=e.clippingPlanes?.length){Tg(`Clipping plane index ${r} is out of range.`);return}let i=a||new Float64Array(4);return xg(e.clippingPlanes[r],vi),F.invert(hi,n),F.transpose(hi,hi),Tt.transformMat4(i,vi,hi),i},t.getClippingPlaneInDataCoords=(n,r,a)=>{let i=e.clippingPlanes;if(i){let s=i.length;if(r>=0&&r<s){xg(i[r],vi),Tt.transformMat4(a,vi,n);return}}Tg(`Clipping plane index ${r} is out of range.`)}}var UC={clippingPlanes:[]};function kC(t,e,n={}){Object.assign(e,UC,n),O.obj(t,e),O.algo(t,e,1,0),e.clippingPlanes||(e.clippingPlanes=[]),GC(t,e)}var yg={extend:kC};function bC(t,e){t.computeBounds=()=>{O.vtkErrorMacro("vtkAbstractMapper3D.computeBounds - NOT IMPLEMENTED")};let n=t.getBounds;t.getBounds=()=>(t.computeBounds(),n());let r=t.getBoundsByReference;t.getBoundsByReference=()=>(t.computeBounds(),r()),t.getCenter=()=>{let a=t.getBoundsByReference();return e.center=$.isValid(a)?$.getCenter(a):null,e.center?.slice()},t.getLength=()=>{let a=t.getBoundsByReference();return $.getDiagonalLength(a)}}var zC=t=>({bounds:[...$.INIT_BOUNDS],center:[0,0,0],viewSpecificProperties:{},...t});function WC(t,e,n={}){Object.assign(e,zC(n)),yg.extend(t,e,n),O.setGet(t,e,["viewSpecificProperties"]),O.getArray(t,e,["bounds"],6),bC(t,e)}var di={extend:WC};var tt={Off:0,PolygonOffset:1},Eo=tt.PolygonOffset,Ti=tt.Off,AC=["VTK_RESOLVE_OFF","VTK_RESOLVE_POLYGON_OFFSET"];function PC(){return Eo}function HC(t){let e=Eo===t;return Eo=t,e}function IC(){return Ti}function xi(t=0){let e=Ti===t;return Ti=t,e}function jC(){return xi(tt.Off)}function $C(){return xi(tt.Off)}function KC(){return xi(tt.PolygonOffset)}function XC(){return AC[Ti]}var yi={Resolve:tt,getResolveCoincidentTopologyAsString:XC,getResolveCoincidentTopologyPolygonOffsetFaces:PC,getResolveCoincidentTopology:IC,setResolveCoincidentTopology:xi,setResolveCoincidentTopologyPolygonOffsetFaces:HC,setResolveCoincidentTopologyToDefault:jC,setResolveCoincidentTopologyToOff:$C,setResolveCoincidentTopologyToPolygonOffset:KC};function mg(t,e,n){n.forEach(r=>{t[`get${r.method}`]=()=>e[r.key],t[`set${r.method}`]=O.objectSetterMap.object(t,e,{name:r.key,params:["factor","offset"]})})}var Do=["Polygon","Line","Point"],YC={Polygon:{factor:2,offset:0},Line:{factor:1,offset:-1},Point:{factor:0,offset:-2}},qC=()=>{},An={modified:qC};mg(An,YC,Do.map(t=>({key:t,method:`ResolveCoincidentTopology${t}OffsetParameters`})));function ZC(t,e){e.resolveCoincidentTopology===void 0&&(e.resolveCoincidentTopology=!1),O.setGet(t,e,["resolveCoincidentTopology"]),e.topologyOffset={Polygon:{factor:0,offset:0},Line:{factor:0,offset:0},Point:{factor:0,offset:0}},Object.keys(yi).forEach(n=>{t[n]=yi[n]}),Object.keys(An).filter(n=>n!=="modified").forEach(n=>{t[n]=An[n]}),mg(t,e.topologyOffset,Do.map(n=>({key:n,method:`RelativeCoincidentTopology${n}OffsetParameters`}))),t.getCoincidentTopologyPolygonOffsetParameters=()=>{let n=An.getResolveCoincidentTopologyPolygonOffsetParameters(),r=t.getRelativeCoincidentTopologyPolygonOffsetParameters();return{factor:n.factor+r.factor,offset:n.offset+r.offset}},t.getCoincidentTopologyLineOffsetParameters=()=>{let n=An.getResolveCoincidentTopologyLineOffsetParameters(),r=t.getRelativeCoincidentTopologyLineOffsetParameters();return{factor:n.factor+r.factor,offset:n.offset+r.offset}},t.getCoincidentTopologyPointOffsetParameter=()=>{let n=An.getResolveCoincidentTopologyPointOffsetParameters(),r=t.getRelativeCoincidentTopologyPointOffsetParameters();return{factor:n.factor+r.factor,offset:n.offset+r.offset}}}var Vo={implementCoincidentTopologyMethods:ZC,staticOffsetAPI:An,otherStaticMethods:yi,CATEGORIES:Do,Resolve:tt};var ht={UNCHANGED:0,SINGLE_POINT:1,X_LINE:2,Y_LINE:3,Z_LINE:4,XY_PLANE:5,YZ_PLANE:6,XZ_PLANE:7,XYZ_GRID:8,EMPTY:9},Lo={StructuredType:ht};var{StructuredType:Jt}=Lo;function QC(t){let e=0;for(let n=0;n<3;++n)t[n*2]<t[n*2+1]&&e++;return t[0]>t[1]||t[2]>t[3]||t[4]>t[5]?Jt.EMPTY:e===3?Jt.XYZ_GRID:e===2?t[0]===t[1]?Jt.YZ_PLANE:t[2]===t[3]?Jt.XZ_PLANE:Jt.XY_PLANE:e===1?t[0]<t[1]?Jt.X_LINE:t[2]<t[3]?Jt.Y_LINE:Jt.Z_LINE:Jt.SINGLE_POINT}var Sg={getDataDescriptionFromExtent:QC,...Lo};var{vtkErrorMacro:Pn}=O;function JC(t,e){e.classHierarchy.push("vtkImageData"),t.setExtent=(...r)=>{if(e.deleted)return Pn("instance deleted - cannot call any method"),!1;let a=r.length===1?r[0]:r;if(a.length!==6)return!1;let i=e.extent.some((s,o)=>s!==a[o]);return i&&(e.extent=a.slice(),e.dataDescription=Sg.getDataDescriptionFromExtent(e.extent),t.modified()),i},t.setDimensions=(...r)=>{let a,i,s;if(e.deleted){Pn("instance deleted - cannot call any method");return}if(r.length===1){let o=r[0];a=o[0],i=o[1],s=o[2]}else if(r.length===3)a=r[0],i=r[1],s=r[2];else{Pn("Bad dimension specification");return}t.setExtent(0,a-1,0,i-1,0,s-1)},t.getDimensions=()=>[e.extent[1]-e.extent[0]+1,e.extent[3]-e.extent[2]+1,e.extent[5]-e.extent[4]+1],t.getNumberOfCells=()=>{let r=t.getDimensions(),a=1;for(let i=0;i<3;i++){if(r[i]===0)return 0;r[i]>1&&(a*=r[i]-1)}return a},t.getNumberOfPoints=()=>{let r=t.getDimensions();return r[0]*r[1]*r[2]},t.getPoint=r=>{let a=t.getDimensions();if(a[0]===0||a[1]===0||a[2]===0)return Pn("Requesting a point from an empty image."),null;let i=new Float64Array(3);switch(e.dataDescription){case ht.EMPTY:return null;case ht.SINGLE_POINT:break;case ht.X_LINE:i[0]=r;break;case ht.Y_LINE:i[1]=r;break;case ht.Z_LINE:i[2]=r;break;case ht.XY_PLANE:i[0]=r%a[0],i[1]=r/a[0];break;case ht.YZ_PLANE:i[1]=r%a[1],i[2]=r/a[1];break;case ht.XZ_PLANE:i[0]=r%a[0],i[2]=r/a[0];break;case ht.XYZ_GRID:i[0]=r%a[0],i[1]=r/a[0]%a[1],i[2]=r/(a[0]*a[1]);break;default:Pn("Invalid dataDescription");break}let s=[0,0,0];return t.indexToWorld(i,s),s},t.getBounds=()=>t.extentToBounds(t.getSpatialExtent()),t.extentToBounds=r=>$.transformBounds(r,e.indexToWorld),t.getSpatialExtent=()=>$.inflate([...e.extent],.5),t.computeTransforms=()=>{F.fromTranslation(e.indexToWorld,e.origin),e.indexToWorld[0]=e.direction[0],e.indexToWorld[1]=e.direction[1],e.indexToWorld[2]=e.direction[2],e.indexToWorld[4]=e.direction[3],e.indexToWorld[5]=e.direction[4],e.indexToWorld[6]=e.direction[5],e.indexToWorld[8]=e.direction[6],e.indexToWorld[9]=e.direction[7],e.indexToWorld[10]=e.direction[8],F.scale(e.indexToWorld,e.indexToWorld,e.spacing),F.invert(e.worldToIndex,e.indexToWorld)},t.indexToWorld=(r,a=[])=>(W.transformMat4(a,r,e.indexToWorld),a),t.indexToWorldVec3=t.indexToWorld,t.worldToIndex=(r,a=[])=>(W.transformMat4(a,r,e.worldToIndex),a),t.worldToIndexVec3=t.worldToIndex,t.indexToWorldBounds=(r,a=[])=>$.transformBounds(r,e.indexToWorld,a),t.worldToIndexBounds=(r,a=[])=>$.transformBounds(r,e.worldToIndex,a),e._onOriginChanged=t.computeTransforms,e._onDirectionChanged=t.computeTransforms,e._onSpacingChanged=t.computeTransforms,t.computeTransforms(),t.getCenter=()=>$.getCenter(t.getBounds()),t.computeHistogram=(r,a=null)=>{let i=[0,0,0,0,0,0];t.worldToIndexBounds(r,i);let s=[0,0,0],o=[0,0,0];$.computeCornerPoints(i,s,o),$a(s,s),$a(o,o);let c=t.getDimensions();Xa(s,[0,0,0],[c[0]-1,c[1]-1,c[2]-1],s),Xa(o,[0,0,0],[c[0]-1,c[1]-1,c[2]-1],o);let f=c[0],u=c[0]*c[1],g=t.getPointData().getScalars().getData(),l=-1/0,h=1/0,y=0,p=0,v=0;for(let T=s[2];T<=o[2];T++)for(let d=s[1];d<=o[1];d++){let C=s[0]+d*f+T*u;for(let w=s[0];w<=o[0];w++){if(!a||a([w,d,T],i)){let D=g[C];D>l&&(l=D),D<h&&(h=D),y+=D*D,p+=D,v+=1}++C}}let x=v>0?p/v:0,S=v?Math.abs(y/v-x*x):0;return{minimum:h,maximum:l,average:x,variance:S,sigma:Math.sqrt(S),count:v}},t.computeIncrements=(r,a=1)=>{let i=[],s=a;for(let o=0;o<3;++o)i[o]=s,s*=r[o*2+1]-r[o*2]+1;return i},t.computeOffsetIndex=([r,a,i])=>{let s=t.getExtent(),o=t.getPointData().getScalars().getNumberOfComponents(),c=t.computeIncrements(s,o);return Math.floor((Math.round(r)-s[0])*c[0]+(Math.round(a)-s[2])*c[1]+(Math.round(i)-s[4])*c[2])},t.getOffsetIndexFromWorld=r=>{let a=t.getExtent(),i=t.worldToIndex(r);for(let s=0;s<3;++s)if(i[s]<a[s*2]||i[s]>a[s*2+1])return Pn(`GetScalarPointer: Pixel ${i} is not in memory. Current extent = ${a}`),NaN;return t.computeOffsetIndex(i)},t.getScalarValueFromWorld=(r,a=0)=>{let i=t.getPointData().getScalars().getNumberOfComponents();if(a<0||a>=i)return Pn(`GetScalarPointer: Scalar Component ${a} is not within bounds. Current Scalar numberOfComponents: ${i}`),NaN;let s=t.getOffsetIndexFromWorld(r);return Number.isNaN(s)?s:t.getPointData().getScalars().getComponent(s,a)};let n=t.initialize;t.initialize=()=>(t.set({direction:K.identity(e.direction),spacing:[1,1,1],origin:[0,0,0],extent:[0,-1,0,-1,0,-1],dataDescription:ht.EMPTY}),n())}var e2={direction:null,indexToWorld:null,worldToIndex:null,spacing:[1,1,1],origin:[0,0,0],extent:[0,-1,0,-1,0,-1],dataDescription:ht.EMPTY};function Cg(t,e,n={}){Object.assign(e,e2,n),it.extend(t,e,n),e.direction?Array.isArray(e.direction)&&(e.direction=new Float64Array(e.direction.slice(0,9))):e.direction=K.identity(new Float64Array(9)),e.indexToWorld=new Float64Array(16),e.worldToIndex=new Float64Array(16),O.get(t,e,["indexToWorld","worldToIndex"]),O.setGetArray(t,e,["origin","spacing"],3),O.setGetArray(t,e,["direction"],9),O.getArray(t,e,["extent"],6),JC(t,e)}var t2=O.newInstance(Cg,"vtkImageData"),_o={newInstance:t2,extend:Cg};var n2={MAGNITUDE:0,COMPONENT:1,RGBCOLORS:2},mi={LUMINANCE:1,LUMINANCE_ALPHA:2,RGB:3,RGBA:4},r2={LINEAR:0,LOG10:1},ia={VectorMode:n2,ScalarMappingTarget:mi,Scale:r2};var{ScalarMappingTarget:wg,Scale:a2,VectorMode:Ft}=ia,{VtkDataTypes:pn}=Y,{ColorMode:Si}=Tr,{vtkErrorMacro:Og}=O;function i2(t){return t}function Rg(t){return Math.floor(t*255+.5)}function s2(t,e){e.classHierarchy.push("vtkScalarsToColors"),t.setVectorModeToMagnitude=()=>t.setVectorMode(Ft.MAGNITUDE),t.setVectorModeToComponent=()=>t.setVectorMode(Ft.COMPONENT),t.setVectorModeToRGBColors=()=>t.setVectorMode(Ft.RGBCOLORS),t.build=()=>{},t.isOpaque=()=>!0,t.setAnnotations=(n,r)=>{if(!(n&&!r||!n&&r)){if(n&&r&&n.length!==r.length){Og("Values and annotations do not have the same number of tuples so ignoring");return}if(e.annotationArray=[],r&&n){let a=r.length;for(let i=0;i<a;i++)e.annotationArray.push({value:n[i],annotation:String(r[i])})}t.updateAnnotatedValueMap(),t.modified()}},t.setAnnotation=(n,r)=>{let a=t.checkForAnnotatedValue(n),i=!1;return a>=0?e.annotationArray[a].annotation!==r&&(e.annotationArray[a].annotation=r,i=!0):(e.annotationArray.push({value:n,annotation:r}),a=e.annotationArray.length-1,i=!0),i&&(t.updateAnnotatedValueMap(),t.modified()),a},t.getNumberOfAnnotatedValues=()=>e.annotationArray.length,t.getAnnotatedValue=n=>n<0||n>=e.annotationArray.length?null:e.annotationArray[n].value,t.getAnnotation=n=>e.annotationArray[n]===void 0?null:e.annotationArray[n].annotation,t.getAnnotatedValueIndex=n=>e.annotationArray.length?t.checkForAnnotatedValue(n):-1,t.removeAnnotation=n=>{let r=t.checkForAnnotatedValue(n),a=r>=0;return a&&(e.annotationArray.splice(r,1),t.updateAnnotatedValueMap(),t.modified()),a},t.resetAnnotations=()=>{e.annotationArray=[],e.annotatedValueMap=[],t.modified()},t.getAnnotationColor=(n,r)=>{if(e.indexedLookup){let a=t.getAnnotatedValueIndex(n);t.getIndexedColor(a,r)}else t.getColor(parseFloat(n),r),r[3]=1},t.checkForAnnotatedValue=n=>t.getAnnotatedValueIndexInternal(n),t.getAnnotatedValueIndexInternal=n=>{if(e.annotatedValueMap[n]!==void 0){let r=e.annotationArray.length;return e.annotatedValueMap[n]%r}return-1},t.getIndexedColor=(n,r)=>{r[0]=0,r[1]=0,r[2]=0,r[3]=0},t.updateAnnotatedValueMap=()=>{e.annotatedValueMap=[];let n=e.annotationArray.length;for(let r=0;r<n;r++)e.annotatedValueMap[e.annotationArray[r].value]=r},t.mapScalars=(n,r,a)=>{let i=n.getNumberOfComponents(),s=null;if(r===Si.DEFAULT&&(n.getDataType()===pn.UNSIGNED_CHAR||n.getDataType()===pn.UNSIGNED_CHAR_CLAMPED)||r===Si.DIRECT_SCALARS&&n)s=t.convertToRGBA(n,i,n.getNumberOfTuples());else{let o={type:"vtkDataArray",name:"temp",numberOfComponents:4,dataType:pn.UNSIGNED_CHAR},c=O.newTypedArray(o.dataType,4*n.getNumberOfTuples());o.values=c,o.size=c.length,s=Y.newInstance(o);let f=a;f<0&&i>1?t.mapVectorsThroughTable(n,s,wg.RGBA,-1,-1):(f<0&&(f=0),f>=i&&(f=i-1),t.mapScalarsThroughTable(n,s,wg.RGBA,f))}return s},t.mapVectorsToMagnitude=(n,r,a)=>{let i=n.getNumberOfTuples(),s=n.getNumberOfComponents(),o=r.getData(),c=n.getData();for(let f=0;f<i;f++){let u=0;for(let g=0;g<a;g++)u+=c[f*s+g]*c[f*s+g];o[f]=Math.sqrt(u)}},t.mapVectorsThroughTable=(n,r,a,i,s)=>{let o=t.getVectorMode(),c=s,f=i,u=n.getNumberOfComponents();o===Ft.COMPONENT?(f===-1&&(f=t.getVectorComponent()),f<0&&(f=0),f>=u&&(f=u-1)):(c===-1&&(c=t.getVectorSize()),c<=0?(f=0,c=u):(f<0&&(f=0),f>=u&&(f=u-1),f+c>u&&(c=u-f)),o===Ft.MAGNITUDE&&(u===1||c===1)&&(o=Ft.COMPONENT));let g=0;switch(f>0&&(g=f),o){case Ft.COMPONENT:t.mapScalarsThroughTable(n,r,a,g);break;case Ft.RGBCOLORS:break;case Ft.MAGNITUDE:default:{let l=Y.newInstance({numberOfComponents:1,values:new Float32Array(n.getNumberOfTuples())});t.mapVectorsToMagnitude(n,l,c),t.mapScalarsThroughTable(l,r,a,0);break}}},t.luminanceToRGBA=(n,r,a,i)=>{let s=i(a),o=r.getData(),c=n.getData(),f=o.length,u=0,g=1,l=0;for(let h=u;h<f;h+=g){let y=i(o[h]);c[l*4]=y,c[l*4+1]=y,c[l*4+2]=y,c[l*4+3]=s,l++}},t.luminanceAlphaToRGBA=(n,r,a,i)=>{let s=r.getData(),o=n.getData(),c=s.length,f=0,u=2,g=0;for(let l=f;l<c;l+=u){let h=i(s[l]);o[g]=h,o[g+1]=h,o[g+2]=h,o[g+3]=i(s[l+1])*a,g+=4}},t.rGBToRGBA=(n,r,a,i)=>{let s=Rg(a),o=r.getData(),c=n.getData(),f=o.length,u=0,g=3,l=0;for(let h=u;h<f;h+=g)c[l*4]=i(o[h]),c[l*4+1]=i(o[h+1]),c[l*4+2]=i(o[h+2]),c[l*4+3]=s,l++},t.rGBAToRGBA=(n,r,a,i)=>{let s=r.getData(),o=n.getData(),c=s.length,f=0,u=4,g=0;for(let l=f;l<c;l+=u)o[g*4]=i(s[l]),o[g*4+1]=i(s[l+1]),o[g*4+2]=i(s[l+2]),o[g*4+3]=i(s[l+3])*a,g++},t.convertToRGBA=(n,r,a)=>{let{alpha:i}=e;if(r===4&&i>=1&&n.getDataType()===pn.UNSIGNED_CHAR)return n;let s=Y.newInstance({numberOfComponents:4,empty:!0,size:4*a,dataType:pn.UNSIGNED_CHAR});if(a<=0)return s;i=i>0?i:0,i=i<1?i:1;let o=i2;switch((n.getDataType()===pn.FLOAT||n.getDataType()===pn.DOUBLE)&&(o=Rg),r){case 1:t.luminanceToRGBA(s,n,i,o);break;case 2:t.luminanceAlphaToRGBA(s,n,o);break;case 3:t.rGBToRGBA(s,n,i,o);break;case 4:t.rGBAToRGBA(s,n,i,o);break;default:return Og("Cannot convert colors"),null}return s},t.usingLogScale=()=>!1,t.getNumberOfAvailableColors=()=>256*256*256,t.setRange=(n,r)=>t.setMappingRange(n,r),t.getRange=()=>t.getMappingRange(),t.areScalarsOpaque=(n,r,a)=>{if(!n)return t.isOpaque();let i=n.getNumberOfComponents();return r===Si.DEFAULT&&n.getDataType()===pn.UNSIGNED_CHAR||r===Si.DIRECT_SCALARS?i===3||i===1?e.alpha>=1:n.getRange(i-1)[0]===255:!0}}var o2={alpha:1,vectorComponent:0,vectorSize:-1,vectorMode:Ft.COMPONENT,mappingRange:null,annotationArray:null,annotatedValueMap:null,indexedLookup:!1,scale:a2.LINEAR};function Mg(t,e,n={}){Object.assign(e,o2,n),O.obj(t,e),e.mappingRange=[0,255],e.annotationArray=[],e.annotatedValueMap=[],O.setGet(t,e,["vectorSize","vectorComponent","vectorMode","alpha","indexedLookup"]),O.setArray(t,e,["mappingRange"],2),O.getArray(t,e,["mappingRange"]),s2(t,e)}var c2=O.newInstance(Mg,"vtkScalarsToColors"),Hn={newInstance:c2,extend:Mg,...ia};var{vtkErrorMacro:Eg}=O,Dg=0,Vg=1,Fo=2;function f2(t,e){e.classHierarchy.push("vtkLookupTable"),t.isOpaque=()=>{if(e.opaqueFlagBuildTime.getMTime()<t.getMTime()){let n=!0;e.nanColor[3]<1&&(n=0),e.useBelowRangeColor&&e.belowRangeColor[3]<1&&(n=0),e.useAboveRangeColor&&e.aboveRangeColor[3]<1&&(n=0);for(let r=3;r<e.table.length&&n;r+=4)e.table[r]<255&&(n=!1);e.opaqueFlag=n,e.opaqueFlagBuildTime.modified()}return e.opaqueFlag},t.usingLogScale=()=>!1,t.getNumberOfAvailableColors=()=>e.table.length/4-3,t.linearIndexLookup=(n,r)=>{let a=0,i=Number(n);return i<r.range[0]?a=r.maxIndex+Dg+1.5:i>r.range[1]?a=r.maxIndex+Vg+1.5:(a=(i+r.shift)*r.scale,a=a<r.maxIndex?a:r.maxIndex),Math.floor(a)},t.linearLookup=(n,r,a)=>{let i=0;kn(n)?i=Math.floor(a.maxIndex+1.5+Fo):i=t.linearIndexLookup(n,a);let s=4*i;return r.slice(s,s+4)},t.indexedLookupFunction=(n,r,a)=>{let i=t.getAnnotatedValueIndexInternal(n);i===-1&&(i=e.numberOfColors+Fo);let s=4*i;return[r[s],r[s+1],r[s+2],r[s+3]]},t.lookupShiftAndScale=(n,r)=>{r.shift=-n[0],r.scale=Number.MAX_VALUE,n[1]>n[0]&&(r.scale=(r.maxIndex+1)/(n[1]-n[0]))},t.mapScalarsThroughTable=(n,r,a,i)=>{let s=t.linearLookup;e.indexedLookup&&(s=t.indexedLookupFunction);let o=t.getMappingRange(),c={maxIndex:t.getNumberOfColors()-1,range:o,shift:0,scale:0};t.lookupShiftAndScale(o,c);let f=t.getAlpha(),u=n.getNumberOfTuples(),g=n.getNumberOfComponents(),l=r.getData(),h=n.getData();if(f>=1){if(a===mi.RGBA)for(let y=0;y<u;y++){let p=s(h[y*g+i],e.table,c);l[y*4]=p[0],l[y*4+1]=p[1],l[y*4+2]=p[2],l[y*4+3]=p[3]}}else if(a===mi.RGBA)for(let y=0;y<u;y++){let p=s(h[y*g+i],e.table,c);l[y*4]=p[0],l[y*4+1]=p[1],l[y*4+2]=p[2],l[y*4+3]=Math.floor(p[3]*f+.5)}},t.forceBuild=()=>{let n=0,r=0,a=0,i=0,s=e.numberOfColors-1;s&&(n=(e.hueRange[1]-e.hueRange[0])/s,r=(e.saturationRange[1]-e.saturationRange[0])/s,a=(e.valueRange[1]-e.valueRange[0])/s,i=(e.alphaRange[1]-e.alphaRange[0])/s),e.table.length=4*s+16;let o=[],c=[];for(let f=0;f<=s;f++)o[0]=e.hueRange[0]+f*n,o[1]=e.saturationRange[0]+f*r,o[2]=e.valueRange[0]+f*a,Kt(o,c),c[3]=e.alphaRange[0]+f*i,e.table[f*4]=c[0]*255+.5,e.table[f*4+1]=c[1]*255+.5,e.table[f*4+2]=c[2]*255+.5,e.table[f*4+3]=c[3]*255+.5;t.buildSpecialColors(),e.buildTime.modified()},t.setTable=n=>{if(Array.isArray(n)){let a=n[0].length;e.numberOfColors=n.length;let i=4-a,s=0;for(let o=0;o<e.numberOfColors;o++)e.table[o*4]=255,e.table[o*4+1]=255,e.table[o*4+2]=255,e.table[o*4+3]=255;for(let o=0;o<n.length;o++){let c=n[o];for(let f=0;f<a;f++)e.table[s++]=c[f];s+=i}return t.buildSpecialColors(),e.insertTime.modified(),t.modified(),!0}if(n.getNumberOfComponents()!==4)return Eg("Expected 4 components for RGBA colors"),!1;if(n.getDataType()!==ee.UNSIGNED_CHAR)return Eg("Expected unsigned char values for RGBA colors"),!1;e.numberOfColors=n.getNumberOfTuples();let r=n.getData();e.table.length=r.length;for(let a=0;a<r.length;a++)e.table[a]=r[a];return t.buildSpecialColors(),e.insertTime.modified(),t.modified(),!0},t.buildSpecialColors=()=>{let{numberOfColors:n}=e,r=e.table,a=(n+Dg)*4;e.useBelowRangeColor||n===0?(r[a]=e.belowRangeColor[0]*255+.5,r[a+1]=e.belowRangeColor[1]*255+.5,r[a+2]=e.belowRangeColor[2]*255+.5,r[a+3]=e.belowRangeColor[3]*255+.5):(r[a]=r[0],r[a+1]=r[1],r[a+2]=r[2],r[a+3]=r[3]),a=(n+Vg)*4,e.useAboveRangeColor||n===0?(r[a]=e.aboveRangeColor[0]*255+.5,r[a+1]=e.aboveRangeColor[1]*255+.5,r[a+2]=e.aboveRangeColor[2]*255+.5,r[a+3]=e.aboveRangeColor[3]*255+.5):(r[a]=r[4*(n-1)+0],r[a+1]=r[4*(n-1)+1],r[a+2]=r[4*(n-1)+2],r[a+3]=r[4*(n-1)+3]),a=(n+Fo)*4,r[a]=e.nanColor[0]*255+.5,r[a+1]=e.nanColor[1]*255+.5,r[a+2]=e.nanColor[2]*255+.5,r[a+3]=e.nanColor[3]*255+.5},t.build=()=>{(e.table.length<1||t.getMTime()>e.buildTime.getMTime()&&e.insertTime.getMTime()<=e.buildTime.getMTime())&&t.forceBuild()},e.table.length>0&&(t.buildSpecialColors(),e.insertTime.modified())}var u2={numberOfColors:256,hueRange:[0,.66667],saturationRange:[1,1],valueRange:[1,1],alphaRange:[1,1],nanColor:[.5,0,0,1],belowRangeColor:[0,0,0,1],aboveRangeColor:[1,1,1,1],useAboveRangeColor:!1,useBelowRangeColor:!1,alpha:1};function Lg(t,e,n={}){Object.assign(e,u2,n),Hn.extend(t,e,n),e.table||(e.table=[]),e.buildTime={},O.obj(e.buildTime),e.opaqueFlagBuildTime={},O.obj(e.opaqueFlagBuildTime,{mtime:0}),e.insertTime={},O.obj(e.insertTime,{mtime:0}),O.get(t,e,["buildTime"]),O.setGet(t,e,["numberOfColors","useAboveRangeColor","useBelowRangeColor"]),O.setArray(t,e,["alphaRange","hueRange","saturationRange","valueRange"],2),O.setArray(t,e,["nanColor","belowRangeColor","aboveRangeColor"],4),O.getArray(t,e,["hueRange","saturationRange","valueRange","alphaRange","nanColor","belowRangeColor","aboveRangeColor"]),f2(t,e)}var l2=O.newInstance(Lg,"vtkLookupTable"),_g={newInstance:l2,extend:Lg};var{ColorMode:Ci,ScalarMode:In,GetArray:sa}=Tr,{VectorMode:g2}=ia,{VtkDataTypes:p2}=Y;function h2(t,e){let n=t[1]%2===0?1:-1;if(t[0]+=n,t[0]>=e[0]||t[0]<0){let r=t[2]%2===0?1:-1;t[0]-=n,t[1]+=r,(t[1]>=e[1]||t[1]<0)&&(t[1]-=r,t[2]++)}}function v2(t,e){return t[0]+e[0]*(t[1]+e[1]*t[2])}function Fg(t,e,n){let r=Math.floor(e),a=r%(2*n[0]),i,s;a<n[0]?(t[0]=a,i=1,s=t[0]===n[0]-1):(t[0]=2*n[0]-1-a,i=-1,s=t[0]===0);let o=Math.floor(r/n[0]),c=o%(2*n[1]),f,u;c<n[1]?(t[1]=c,f=1,u=t[1]===n[1]-1):(t[1]=2*n[1]-1-c,f=-1,u=t[1]===0),t[2]=Math.floor(o/n[1]);let g=e-r;s?u?t[2]+=g:t[1]+=f*g:t[0]+=i*g,t[0]=(t[0]+.5)/n[0],t[1]=(t[1]+.5)/n[1],t[2]=(t[2]+.5)/n[2]}var Ng=new WeakMap;function Bg(t,e,n,r,a,i,s){let o=new Array(arguments.length);for(let V=0;V<arguments.length;++V){let N=arguments[V];o[V]=N.getMTime?.()??N}let c=o.join("/"),f=Ng.get(t);if(f&&f.stringHash===c)return f.textureCoordinates;let u=(n[1]-n[0])/(a-1),[g,l]=[n[0]-u,n[1]+u],h=g-.5*u,y=1/(l-g+u),p=g,v=(a+1)/(l-g),x=t.getData(),S=t.getNumberOfTuples(),T=t.getNumberOfComponents(),d=e<0||e>=T,C=i[2]<=1?2:3,w=Y.newInstance({numberOfComponents:C,values:new Float32Array(S*C)}),D=w.getData(),m=[0,0,0];Fg(m,a+2,i);let M=0,R=0,E=[.5,.5,.5];for(let V=0;V<S;++V){let N;if(d){let _=0;for(let L=0;L<T;++L){let B=Number(x[M+L]);_+=B*B}N=Math.sqrt(_)}else N=Number(x[M+e]);if(r&&(N=Math.log10(N)),M+=T,kn(N))E[0]=m[0],E[1]=m[1],E[2]=m[2];else if(s){let _=(N-p)*v;_<1?_=0:_>a&&(_=a+1),Fg(E,_,i)}else{E[1]=.49;let _=(N-h)*y;_>1e3?E[0]=1e3:_<-1e3?E[0]=-1e3:E[0]=_}for(let _=0;_<C;++_)D[R++]=E[_]}return Ng.set(t,{stringHash:c,textureCoordinates:w}),w}function d2(t,e){t.createDefaultLookupTable=()=>{e.lookupTable=_g.newInstance()},t.getColorModeAsString=()=>O.enumToString(Ci,e.colorMode),t.setColorModeToDefault=()=>t.setColorMode(0),t.setColorModeToMapScalars=()=>t.setColorMode(1),t.setColorModeToDirectScalars=()=>t.setColorMode(2),t.getScalarModeAsString=()=>O.enumToString(In,e.scalarMode),t.setScalarModeToDefault=()=>t.setScalarMode(0),t.setScalarModeToUsePointData=()=>t.setScalarMode(1),t.setScalarModeToUseCellData=()=>t.setScalarMode(2),t.setScalarModeToUsePointFieldData=()=>t.setScalarMode(3),t.setScalarModeToUseCellFieldData=()=>t.setScalarMode(4),t.setScalarModeToUseFieldData=()=>t.setScalarMode(5),t.getAbstractScalars=(n,r,a,i,s)=>{if(!n||!e.scalarVisibility)return{scalars:null,cellFlag:!1};let o=null,c=!1;if(r===In.DEFAULT)o=n.getPointData().getScalars(),o||(o=n.getCellData().getScalars(),c=!0);else if(r===In.USE_POINT_DATA){let f=n.getPointData();a===sa.BY_ID?o=f.getArrayByIndex(i):s&&(o=f.getArrayByName(s)),o||(o=f.getScalars())}else if(r===In.USE_CELL_DATA){let f=n.getCellData();c=!0,a===sa.BY_ID?o=f.getArrayByIndex(i):s&&(o=f.getArrayByName(s)),o||(o=f.getScalars())}else if(r===In.USE_POINT_FIELD_DATA){let f=n.getPointData();a===sa.BY_ID?o=f.getArrayByIndex(i):o=f.getArrayByName(s)}else if(r===In.USE_CELL_FIELD_DATA){let f=n.getCellData();c=!0,a===sa.BY_ID?o=f.getArrayByIndex(i):o=f.getArrayByName(s)}else if(r===In.USE_FIELD_DATA){let f=n.getFieldData();a===sa.BY_ID?o=f.getArrayByIndex(i):o=f.getArrayByName(s)}return{scalars:o,cellFlag:c}},t.mapScalars=(n,r)=>{let{scalars:a,cellFlag:i}=t.getAbstractScalars(n,e.scalarMode,e.arrayAccessMode,e.arrayId,e.colorByArrayName);if(e.areScalarsMappedFromCells=i,!a){e.colorCoordinates=null,e.colorTextureMap=null,e.colorMapColors=null;return}let s=`${t.getMTime()}${a.getMTime()}${r}`;if(e.colorBuildString!==s){if(e.useLookupTableScalarRange||t.getLookupTable().setRange(e.scalarRange[0],e.scalarRange[1]),t.canUseTextureMapForColoring(a,i))e.mapScalarsToTexture(a,i,r);else{e.colorCoordinates=null,e.colorTextureMap=null;let o=t.getLookupTable();o&&(o.build(),e.colorMapColors=o.mapScalars(a,e.colorMode,e.fieldDataTupleId))}e.colorBuildString=`${t.getMTime()}${a.getMTime()}${r}`}},e.mapScalarsToTexture=(n,r,a)=>{let i=e.lookupTable.getRange(),s=e.lookupTable.usingLogScale(),o=e.lookupTable.getAlpha(),c=s?[Math.log10(i[0]),Math.log10(i[1])]:i;if(e.colorMapColors=null,e.colorTextureMap==null||t.getMTime()>e.colorTextureMap.getMTime()||e.lookupTable.getMTime()>e.colorTextureMap.getMTime()||e.lookupTable.getAlpha()!==a){e.lookupTable.setAlpha(a),e.colorTextureMap=null,e.lookupTable.build();let f=e.lookupTable.getNumberOfAvailableColors(),u=2048;e.numberOfColorsInRange=Math.min(Math.max(f,2),r?u**3-3:4094);let g=e.numberOfColorsInRange+3,l=e.numberOfColorsInRange+2,h=r?[Math.min(Math.ceil(g/u**0),u),Math.min(Math.ceil(g/u**1),u),Math.min(Math.ceil(g/u**2),u)]:[l,2,1],y=h[0]*h[1]*h[2],p=new Float64Array(y);p.fill(NaN);let v=e.numberOfColorsInRange,x=v+2,S=[0,0,0],T=c[0],d=c[1]-c[0];for(let D=0;D<x;++D){let m=v2(S,h),M=T+d*(D-1)/(v-1);p[m]=s?10**M:M,h2(S,h)}let C=Y.newInstance({numberOfComponents:1,values:p}),w=e.lookupTable.mapScalars(C,e.colorMode,0);e.colorTextureMap=_o.newInstance(),e.colorTextureMap.setDimensions(h),e.colorTextureMap.getPointData().setScalars(w),e.lookupTable.setAlpha(o)}e.colorCoordinates=Bg(n,e.lookupTable.getVectorMode()===g2.MAGNITUDE&&n.getNumberOfComponents()>1?-1:e.lookupTable.getVectorComponent(),c,s,e.numberOfColorsInRange,e.colorTextureMap.getDimensions(),r)},t.canUseTextureMapForColoring=(n,r)=>r&&e.colorMode!==Ci.DIRECT_SCALARS?!0:!(e.lookupTable&&e.lookupTable.getIndexedLookup()||!e.interpolateScalarsBeforeMapping||!n||e.colorMode===Ci.DEFAULT&&n.getDataType()===p2.UNSIGNED_CHAR||e.colorMode===Ci.DIRECT_SCALARS),t.clearColorArrays=()=>{e.colorMapColors=null,e.colorCoordinates=null,e.colorTextureMap=null},t.getLookupTable=()=>(e.lookupTable||t.createDefaultLookupTable(),e.lookupTable),t.getMTime=()=>{let n=e.mtime;if(e.lookupTable!==null){let r=e.lookupTable.getMTime();n=r>n?r:n}return n}}var No={colorMapColors:null,areScalarsMappedFromCells:!1,lookupTable:null,scalarVisibility:!0,scalarRange:[0,1],useLookupTableScalarRange:!1,colorMode:0,scalarMode:0,arrayAccessMode:1,colorByArrayName:null,fieldDataTupleId:-1,interpolateScalarsBeforeMapping:!1,colorCoordinates:null,colorTextureMap:null,numberOfColorsInRange:0};function T2(t,e){Object.keys(No).forEach(n=>{if(e[n]===void 0){let r=No[n];e[n]=Array.isArray(r)?r.slice():r}}),O.get(t,e,["areScalarsMappedFromCells","colorCoordinates","colorMapColors","colorTextureMap","numberOfColorsInRange"]),O.setGet(t,e,["colorByArrayName","arrayAccessMode","colorMode","fieldDataTupleId","interpolateScalarsBeforeMapping","lookupTable","scalarMode","scalarVisibility","useLookupTableScalarRange"]),O.setGetArray(t,e,["scalarRange"],2),d2(t,e)}var Gg={implementScalarColoringMethods:T2,DEFAULT_VALUES:No,getOrCreateColorTextureCoordinates:Bg};var Je={MIN_KNOWN_PASS:0,ACTOR_PASS:0,COMPOSITE_INDEX_PASS:1,ID_LOW24:2,ID_HIGH24:3,MAX_KNOWN_PASS:3},Bo={PassTypes:Je};var{FieldAssociations:Ug}=it,{staticOffsetAPI:x2,otherStaticMethods:y2}=Vo;function oa(t){return()=>O.vtkErrorMacro(`vtkMapper::${t} - NOT IMPLEMENTED`)}function m2(t,e){e.classHierarchy.push("vtkMapper"),t.computeBounds=()=>{let n=t.getInputData();n?(e.static||t.update(),$.setBounds(e.bounds,n.getBounds())):$.reset(e.bounds)},t.setForceCompileOnly=n=>{e.forceCompileOnly=n},t.setSelectionWebGLIdsToVTKIds=n=>{e.selectionWebGLIdsToVTKIds=n},t.getIsOpaque=()=>{let n=t.getInputData(),r=t.getAbstractScalars(n,e.scalarMode,e.arrayAccessMode,e.arrayId,e.colorByArrayName).scalars;if(!e.scalarVisibility||r==null)return!0;let a=t.getLookupTable();return a?(a.build(),a.areScalarsOpaque(r,e.colorMode,-1)):!0},t.getPrimitiveCount=()=>{let n=t.getInputData();return{points:n.getPoints().getNumberOfValues()/3,verts:n.getVerts().getNumberOfValues()-n.getVerts().getNumberOfCells(),lines:n.getLines().getNumberOfValues()-2*n.getLines().getNumberOfCells(),triangles:n.getPolys().getNumberOfValues()-3*n.getPolys().getNumberOfCells()}},t.acquireInvertibleLookupTable=oa("AcquireInvertibleLookupTable"),t.valueToColor=oa("ValueToColor"),t.colorToValue=oa("ColorToValue"),t.useInvertibleColorFor=oa("UseInvertibleColorFor"),t.clearInvertibleColor=oa("ClearInvertibleColor"),t.processSelectorPixelBuffers=(n,r)=>{if(!n||!e.selectionWebGLIdsToVTKIds||!e.populateSelectionSettings)return;let a=n.getRawPixelBuffer(Je.ID_LOW24),i=n.getRawPixelBuffer(Je.ID_HIGH24),s=n.getCurrentPass(),o=n.getFieldAssociation(),c=null;o===Ug.FIELD_ASSOCIATION_POINTS?c=e.selectionWebGLIdsToVTKIds.points:o===Ug.FIELD_ASSOCIATION_CELLS&&(c=e.selectionWebGLIdsToVTKIds.cells),c&&r.forEach(f=>{if(s===Je.ID_LOW24){let u=0;i&&(u+=i[f],u*=256),u+=a[f+2],u*=256,u+=a[f+1],u*=256,u+=a[f];let g=c[u],l=n.getPixelBuffer(Je.ID_LOW24);l[f]=g&255,l[f+1]=(g&65280)>>8,l[f+2]=(g&16711680)>>16}else if(s===Je.ID_HIGH24&&i){let u=0;u+=i[f],u*=256,u+=a[f+2],u*=256,u+=a[f+1],u*=256,u+=a[f];let g=c[u],l=n.getPixelBuffer(Je.ID_HIGH24);l[f]=(g&4278190080)>>24}})}}var S2={static:!1,renderTime:0,populateSelectionSettings:!0,selectionWebGLIdsToVTKIds:null,forceCompileOnly:0,useInvertibleColors:!1,invertibleScalars:null,customShaderAttributes:[],debugChannel:0};function kg(t,e,n={}){Object.assign(e,S2,n),di.extend(t,e,n),Gg.implementScalarColoringMethods(t,e),O.get(t,e,["selectionWebGLIdsToVTKIds"]),O.setGet(t,e,["populateSelectionSettings","renderTime","static","customShaderAttributes","debugChannel"]),Vo.implementCoincidentTopologyMethods(t,e),m2(t,e)}var C2=O.newInstance(kg,"vtkMapper"),hn={newInstance:C2,extend:kg,...x2,...y2,...Tr};function w2(t,e){e.classHierarchy.push("vtkTexture"),t.imageLoaded=()=>{e.image.removeEventListener("load",t.imageLoaded),e.imageLoaded=!0,t.modified()},t.setJsImageData=n=>{e.jsImageData!==n&&(n!==null&&(t.setInputData(null),t.setInputConnection(null),e.image=null,e.canvas=null,e.imageBitmap=null),e.jsImageData=n,e.imageLoaded=!0,t.modified())},t.setImageBitmap=n=>{e.imageBitmap!==n&&(n!==null&&(t.setInputData(null),t.setInputConnection(null),e.image=null,e.canvas=null,e.jsImageData=null),e.imageBitmap=n,e.imageLoaded=!0,t.modified())},t.setCanvas=n=>{e.canvas!==n&&(n!==null&&(t.setInputData(null),t.setInputConnection(null),e.image=null,e.imageBitmap=null,e.jsImageData=null),e.canvas=n,t.modified())},t.setImage=n=>{e.image!==n&&(n!==null&&(t.setInputData(null),t.setInputConnection(null),e.canvas=null,e.jsImageData=null,e.imageBitmap=null),e.image=n,e.imageLoaded=!1,n.complete?t.imageLoaded():n.addEventListener("load",t.imageLoaded),t.modified())},t.getDimensionality=()=>{let n=0,r=0,a=1;if(t.getInputData()){let i=t.getInputData();n=i.getDimensions()[0],r=i.getDimensions()[1],a=i.getDimensions()[2]}return e.jsImageData&&(n=e.jsImageData.width,r=e.jsImageData.height),e.canvas&&(n=e.canvas.width,r=e.canvas.height),e.image&&(n=e.image.width,r=e.image.height),e.imageBitmap&&(n=e.imageBitmap.width,r=e.imageBitmap.height),(n>1)+(r>1)+(a>1)},t.getInputAsJsImageData=()=>{if(!e.imageLoaded||t.getInputData())return null;if(e.jsImageData)return e.jsImageData;if(e.imageBitmap)return e.imageBitmap;if(e.canvas)return e.canvas.getContext("2d").getImageData(0,0,e.canvas.width,e.canvas.height);if(e.image){let n=e.image.width,r=e.image.height,a=new OffscreenCanvas(n,r).getContext("2d");return a.translate(0,r),a.scale(1,-1),a.drawImage(e.image,0,0,n,r),a.getImageData(0,0,n,r)}return null}}var O2=(t,e,n)=>{let r=t.createShaderModule({code:`
    @group(0) @binding(0) var inputTexture: texture_2d<f32>;
    @group(0) @binding(1) var outputTexture: texture_storage_2d<rgba8unorm, write>;

    @compute @workgroup_size(8, 8)
    fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
      let texelCoord = vec2<i32>(global_id.xy);
      let outputSize = textureDimensions(outputTexture);

      if (texelCoord.x >= i32(outputSize.x) || texelCoord.y >= i32(outputSize.y)) {
        return;
      }

      let inputSize = textureDimensions(inputTexture);
      let scale = vec2<f32>(inputSize) / vec2<f32>(outputSize);

      // Compute the floating-point source coordinate
      let srcCoord = (vec2<f32>(texelCoord) + 0.5) * scale - 0.5;

      // Get integer coordinates for the four surrounding texels
      let x0 = i32(floor(srcCoord.x));
      let x1 = min(x0 + 1, i32(inputSize.x) - 1);
      let y0 = i32(floor(srcCoord.y));
      let y1 = min(y0 + 1, i32(inputSize.y) - 1);

      // Compute the weights
      let wx = srcCoord.x - f32(x0);
      let wy = srcCoord.y - f32(y0);

      // Fetch the four texels
      let c00 = textureLoad(inputTexture, vec2<i32>(x0, y0), 0);
      let c10 = textureLoad(inputTexture, vec2<i32>(x1, y0), 0);
      let c01 = textureLoad(inputTexture, vec2<i32>(x0, y1), 0);
      let c11 = textureLoad(inputTexture, vec2<i32>(x1, y1), 0);

      // Bilinear interpolation
      let color = mix(
        mix(c00, c10, wx),
        mix(c01, c11, wx),
        wy
      );

      textureStore(outputTexture, texelCoord, color);
    }
  `}),a=t.createBindGroupLayout({entries:[{binding:0,visibility:GPUShaderStage.COMPUTE,texture:{sampleType:"float"}},{binding:1,visibility:GPUShaderStage.COMPUTE,storageTexture:{format:"rgba8unorm",access:"write-only"}},{binding:2,visibility:GPUShaderStage.COMPUTE,sampler:{type:"filtering"}}]}),i=t.createPipelineLayout({bindGroupLayouts:[a]}),s=t.createComputePipeline({label:"ComputeMipmapPipeline",layout:i,compute:{module:r,entryPoint:"main"}}),o=t.createSampler({magFilter:"linear",minFilter:"linear"});for(let c=1;c<n;c++){let f=e.createView({baseMipLevel:c-1,mipLevelCount:1}),u=e.createView({baseMipLevel:c,mipLevelCount:1}),g=t.createBindGroup({layout:s.getBindGroupLayout(0),entries:[{binding:0,resource:f},{binding:1,resource:u},{binding:2,resource:o}]}),l=t.createCommandEncoder({label:"MipmapGenerateCommandEncoder"}),h=l.beginComputePass();h.setPipeline(s),h.setBindGroup(0,g);let y=Math.max(1,e.width>>c),p=Math.max(1,e.height>>c),v=Math.ceil(y/8),x=Math.ceil(p/8);h.dispatchWorkgroups(v,x),h.end(),t.queue.submit([l.finish()])}},R2={image:null,canvas:null,jsImageData:null,imageBitmap:null,imageLoaded:!1,repeat:!1,interpolate:!1,edgeClamp:!1,mipLevel:0,wrapS:null,wrapT:null,resizable:!1};function bg(t,e,n={}){Object.assign(e,R2,n),O.obj(t,e),O.algo(t,e,6,0),O.get(t,e,["canvas","image","jsImageData","imageBitmap","imageLoaded","resizable"]),O.setGet(t,e,["repeat","edgeClamp","interpolate","mipLevel","wrapS","wrapT"]),w2(t,e)}var M2=O.newInstance(bg,"vtkTexture"),E2={generateMipmaps:O2},vn={newInstance:M2,extend:bg,...E2};function wi(t,e){return t==null||e==null?NaN:t<e?-1:t>e?1:t>=e?0:NaN}function D2(t,e){return t==null||e==null?NaN:e<t?-1:e>t?1:e>=t?0:NaN}function zg(t){let e,n,r;t.length!==2?(e=wi,n=(o,c)=>wi(t(o),c),r=(o,c)=>t(o)-c):(e=t===wi||t===D2?t:V2,n=t,r=t);function a(o,c,f=0,u=o.length){if(f<u){if(e(c,c)!==0)return u;do{let g=f+u>>>1;n(o[g],c)<0?f=g+1:u=g}while(f<u)}return f}function i(o,c,f=0,u=o.length){if(f<u){if(e(c,c)!==0)return u;do{let g=f+u>>>1;n(o[g],c)<=0?f=g+1:u=g}while(f<u)}return f}function s(o,c,f=0,u=o.length){let g=a(o,c,f,u-1);return g>f&&r(o[g-1],c)>-r(o[g],c)?g-1:g}return{left:a,center:s,right:i}}function V2(){return 0}function L2(t){return t===null?NaN:+t}var Wg=zg(wi),Ag=Wg.right,gB=Wg.left,pB=zg(L2).center;var hB=Pg(Hg),vB=Pg(_2);function Pg(t){return function(e,n,r=n){if(!((n=+n)>=0))throw new RangeError("invalid rx");if(!((r=+r)>=0))throw new RangeError("invalid ry");let{data:a,width:i,height:s}=e;if(!((i=Math.floor(i))>=0))throw new RangeError("invalid width");if(!((s=Math.floor(s!==void 0?s:a.length/i))>=0))throw new RangeError("invalid height");if(!i||!s||!n&&!r)return e;let o=n&&t(n),c=r&&t(r),f=a.slice();return o&&c?(xr(o,f,a,i,s),xr(o,a,f,i,s),xr(o,f,a,i,s),yr(c,a,f,i,s),yr(c,f,a,i,s),yr(c,a,f,i,s)):o?(xr(o,a,f,i,s),xr(o,f,a,i,s),xr(o,a,f,i,s)):c&&(yr(c,a,f,i,s),yr(c,f,a,i,s),yr(c,a,f,i,s)),e}}function xr(t,e,n,r,a){for(let i=0,s=r*a;i<s;)t(e,n,i,i+=r,1)}function yr(t,e,n,r,a){for(let i=0,s=r*a;i<r;++i)t(e,n,i,i+s,r)}function _2(t){let e=Hg(t);return(n,r,a,i,s)=>{a<<=2,i<<=2,s<<=2,e(n,r,a+0,i+0,s),e(n,r,a+1,i+1,s),e(n,r,a+2,i+2,s),e(n,r,a+3,i+3,s)}}function Hg(t){let e=Math.floor(t);if(e===t)return F2(t);let n=t-e,r=2*t+1;return(a,i,s,o,c)=>{if(!((o-=c)>=s))return;let f=e*i[s],u=c*e,g=u+c;for(let l=s,h=s+u;l<h;l+=c)f+=i[Math.min(o,l)];for(let l=s,h=o;l<=h;l+=c)f+=i[Math.min(o,l+u)],a[l]=(f+n*(i[Math.max(s,l-g)]+i[Math.min(o,l+g)]))/r,f-=i[Math.max(s,l-u)]}}function F2(t){let e=2*t+1;return(n,r,a,i,s)=>{if(!((i-=s)>=a))return;let o=t*r[a],c=s*t;for(let f=a,u=a+c;f<u;f+=s)o+=r[Math.min(i,f)];for(let f=a,u=i;f<=u;f+=s)o+=r[Math.min(i,f+c)],n[f]=o/e,o-=r[Math.max(a,f-c)]}}var N2=Array.prototype,dB=N2.slice;var B2=Math.sqrt(50),G2=Math.sqrt(10),U2=Math.sqrt(2);function Oi(t,e,n){let r=(e-t)/Math.max(0,n),a=Math.floor(Math.log10(r)),i=r/Math.pow(10,a),s=i>=B2?10:i>=G2?5:i>=U2?2:1,o,c,f;return a<0?(f=Math.pow(10,-a)/s,o=Math.round(t*f),c=Math.round(e*f),o/f<t&&++o,c/f>e&&--c,f=-f):(f=Math.pow(10,a)*s,o=Math.round(t/f),c=Math.round(e/f),o*f<t&&++o,c*f>e&&--c),c<o&&.5<=n&&n<2?Oi(t,e,n*2):[o,c,f]}function Ig(t,e,n){if(e=+e,t=+t,n=+n,!(n>0))return[];if(t===e)return[t];let r=e<t,[a,i,s]=r?Oi(e,t,n):Oi(t,e,n);if(!(i>=a))return[];let o=i-a+1,c=new Array(o);if(r)if(s<0)for(let f=0;f<o;++f)c[f]=(i-f)/-s;else for(let f=0;f<o;++f)c[f]=(i-f)*s;else if(s<0)for(let f=0;f<o;++f)c[f]=(a+f)/-s;else for(let f=0;f<o;++f)c[f]=(a+f)*s;return c}function Ri(t,e,n){return e=+e,t=+t,n=+n,Oi(t,e,n)[2]}function jg(t,e,n){e=+e,t=+t,n=+n;let r=e<t,a=r?Ri(e,t,n):Ri(t,e,n);return(r?-1:1)*(a<0?1/-a:a)}var TB=k2(Math.random);function k2(t){return function(n,r=0,a=n.length){let i=a-(r=+r);for(;i;){let s=t()*i--|0,o=n[i+r];n[i+r]=n[s+r],n[s+r]=o}return n}}function $g(t,e){switch(arguments.length){case 0:break;case 1:this.range(t);break;default:this.range(e).domain(t);break}return this}function wr(t,e,n){t.prototype=e.prototype=n,n.constructor=t}function ua(t,e){var n=Object.create(t.prototype);for(var r in e)n[r]=e[r];return n}function dn(){}var Xn=.7,Cr=1/Xn,mr="\\s*([+-]?\\d+)\\s*",ca="\\s*([+-]?(?:\\d*\\.)?\\d+(?:[eE][+-]?\\d+)?)\\s*",Nt="\\s*([+-]?(?:\\d*\\.)?\\d+(?:[eE][+-]?\\d+)?)%\\s*",b2=/^#([0-9a-f]{3,8})$/,z2=new RegExp(`^rgb\\(${mr},${mr},${mr}\\)$`),W2=new RegExp(`^rgb\\(${Nt},${Nt},${Nt}\\)$`),A2=new RegExp(`^rgba\\(${mr},${mr},${mr},${ca}\\)$`),P2=new RegExp(`^rgba\\(${Nt},${Nt},${Nt},${ca}\\)$`),H2=new RegExp(`^hsl\\(${ca},${Nt},${Nt}\\)$`),I2=new RegExp(`^hsla\\(${ca},${Nt},${Nt},${ca}\\)$`),Kg={aliceblue:15792383,antiquewhite:16444375,aqua:65535,aquamarine:8388564,azure:15794175,beige:16119260,bisque:16770244,black:0,blanchedalmond:16772045,blue:255,blueviolet:9055202,brown:10824234,burlywood:14596231,cadetblue:6266528,chartreuse:8388352,chocolate:13789470,coral:16744272,cornflowerblue:6591981,cornsilk:16775388,crimson:14423100,cyan:65535,darkblue:139,darkcyan:35723,darkgoldenrod:12092939,darkgray:11119017,darkgreen:25600,darkgrey:11119017,darkkhaki:12433259,darkmagenta:9109643,darkolivegreen:5597999,darkorange:16747520,darkorchid:10040012,darkred:9109504,darksalmon:15308410,darkseagreen:9419919,darkslateblue:4734347,darkslategray:3100495,darkslategrey:3100495,darkturquoise:52945,darkviolet:9699539,deeppink:16716947,deepskyblue:49151,dimgray:6908265,dimgrey:6908265,dodgerblue:2003199,firebrick:11674146,floralwhite:16775920,forestgreen:2263842,fuchsia:16711935,gainsboro:14474460,ghostwhite:16316671,gold:16766720,goldenrod:14329120,gray:8421504,green:32768,greenyellow:11403055,grey:8421504,honeydew:15794160,hotpink:16738740,indianred:13458524,indigo:4915330,ivory:16777200,khaki:15787660,lavender:15132410,lavenderblush:16773365,lawngreen:8190976,lemonchiffon:16775885,lightblue:11393254,lightcoral:15761536,lightcyan:14745599,lightgoldenrodyellow:16448210,lightgray:13882323,lightgreen:9498256,lightgrey:13882323,lightpink:16758465,lightsalmon:16752762,lightseagreen:2142890,lightskyblue:8900346,lightslategray:7833753,lightslategrey:7833753,lightsteelblue:11584734,lightyellow:16777184,lime:65280,limegreen:3329330,linen:16445670,magenta:16711935,maroon:8388608,mediumaquamarine:6737322,mediumblue:205,mediumorchid:12211667,mediumpurple:9662683,mediumseagreen:3978097,mediumslateblue:8087790,mediumspringgreen:64154,mediumturquoise:4772300,mediumvioletred:13047173,midnightblue:1644912,mintcream:16121850,mistyrose:16770273,moccasin:16770229,navajowhite:16768685,navy:128,oldlace:16643558,olive:8421376,olivedrab:7048739,orange:16753920,orangered:16729344,orchid:14315734,palegoldenrod:15657130,palegreen:10025880,paleturquoise:11529966,palevioletred:14381203,papayawhip:16773077,peachpuff:16767673,peru:13468991,pink:16761035,plum:14524637,powderblue:11591910,purple:8388736,rebeccapurple:6697881,red:16711680,rosybrown:12357519,royalblue:4286945,saddlebrown:9127187,salmon:16416882,sandybrown:16032864,seagreen:3050327,seashell:16774638,sienna:10506797,silver:12632256,skyblue:8900331,slateblue:6970061,slategray:7372944,slategrey:7372944,snow:16775930,springgreen:65407,steelblue:4620980,tan:13808780,teal:32896,thistle:14204888,tomato:16737095,turquoise:4251856,violet:15631086,wheat:16113331,white:16777215,whitesmoke:16119285,yellow:16776960,yellowgreen:10145074};wr(dn,Or,{copy(t){return Object.assign(new this.constructor,this,t)},displayable(){return this.rgb().displayable()},hex:Xg,formatHex:Xg,formatHex8:j2,formatHsl:$2,formatRgb:Yg,toString:Yg});function Xg(){return this.rgb().formatHex()}function j2(){return this.rgb().formatHex8()}function $2(){return ap(this).formatHsl()}function Yg(){return this.rgb().formatRgb()}function Or(t){var e,n;return t=(t+"").trim().toLowerCase(),(e=b2.exec(t))?(n=e[1].length,e=parseInt(e[1],16),n===6?qg(e):n===3?new Xe(e>>8&15|e>>4&240,e>>4&15|e&240,(e&15)<<4|e&15,1):n===8?Mi(e>>24&255,e>>16&255,e>>8&255,(e&255)/255):n===4?Mi(e>>12&15|e>>8&240,e>>8&15|e>>4&240,e>>4&15|e&240,((e&15)<<4|e&15)/255):null):(e=z2.exec(t))?new Xe(e[1],e[2],e[3],1):(e=W2.exec(t))?new Xe(e[1]*255/100,e[2]*255/100,e[3]*255/100,1):(e=A2.exec(t))?Mi(e[1],e[2],e[3],e[4]):(e=P2.exec(t))?Mi(e[1]*255/100,e[2]*255/100,e[3]*255/100,e[4]):(e=H2.exec(t))?Jg(e[1],e[2]/100,e[3]/100,1):(e=I2.exec(t))?Jg(e[1],e[2]/100,e[3]/100,e[4]):Kg.hasOwnProperty(t)?qg(Kg[t]):t==="transparent"?new Xe(NaN,NaN,NaN,0):null}function qg(t){return new Xe(t>>16&255,t>>8&255,t&255,1)}function Mi(t,e,n,r){return r<=0&&(t=e=n=NaN),new Xe(t,e,n,r)}function Wo(t){return t instanceof dn||(t=Or(t)),t?(t=t.rgb(),new Xe(t.r,t.g,t.b,t.opacity)):new Xe}function la(t,e,n,r){return arguments.length===1?Wo(t):new Xe(t,e,n,r??1)}function Xe(t,e,n,r){this.r=+t,this.g=+e,this.b=+n,this.opacity=+r}wr(Xe,la,ua(dn,{brighter(t){return t=t==null?Cr:Math.pow(Cr,t),new Xe(this.r*t,this.g*t,this.b*t,this.opacity)},darker(t){return t=t==null?Xn:Math.pow(Xn,t),new Xe(this.r*t,this.g*t,this.b*t,this.opacity)},rgb(){return this},clamp(){return new Xe($n(this.r),$n(this.g),$n(this.b),Di(this.opacity))},displayable(){return-.5<=this.r&&this.r<255.5&&-.5<=this.g&&this.g<255.5&&-.5<=this.b&&this.b<255.5&&0<=this.opacity&&this.opacity<=1},hex:Zg,formatHex:Zg,formatHex8:K2,formatRgb:Qg,toString:Qg}));function Zg(){return`#${jn(this.r)}${jn(this.g)}${jn(this.b)}`}function K2(){return`#${jn(this.r)}${jn(this.g)}${jn(this.b)}${jn((isNaN(this.opacity)?1:this.opacity)*255)}`}function Qg(){let t=Di(this.opacity);return`${t===1?"rgb(":"rgba("}${$n(this.r)}, ${$n(this.g)}, ${$n(this.b)}${t===1?")":`, ${t})`}`}function Di(t){return isNaN(t)?1:Math.max(0,Math.min(1,t))}function $n(t){return Math.max(0,Math.min(255,Math.round(t)||0))}function jn(t){return t=$n(t),(t<16?"0":"")+t.toString(16)}function Jg(t,e,n,r){return r<=0?t=e=n=NaN:n<=0||n>=1?t=e=NaN:e<=0&&(t=NaN),new Mt(t,e,n,r)}function ap(t){if(t instanceof Mt)return new Mt(t.h,t.s,t.l,t.opacity);if(t instanceof dn||(t=Or(t)),!t)return new Mt;if(t instanceof Mt)return t;t=t.rgb();var e=t.r/255,n=t.g/255,r=t.b/255,a=Math.min(e,n,r),i=Math.max(e,n,r),s=NaN,o=i-a,c=(i+a)/2;return o?(e===i?s=(n-r)/o+(n<r)*6:n===i?s=(r-e)/o+2:s=(e-n)/o+4,o/=c<.5?i+a:2-i-a,s*=60):o=c>0&&c<1?0:s,new Mt(s,o,c,t.opacity)}function Li(t,e,n,r){return arguments.length===1?ap(t):new Mt(t,e,n,r??1)}function Mt(t,e,n,r){this.h=+t,this.s=+e,this.l=+n,this.opacity=+r}wr(Mt,Li,ua(dn,{brighter(t){return t=t==null?Cr:Math.pow(Cr,t),new Mt(this.h,this.s,this.l*t,this.opacity)},darker(t){return t=t==null?Xn:Math.pow(Xn,t),new Mt(this.h,this.s,this.l*t,this.opacity)},rgb(){var t=this.h%360+(this.h<0)*360,e=isNaN(t)||isNaN(this.s)?0:this.s,n=this.l,r=n+(n<.5?n:1-n)*e,a=2*n-r;return new Xe(Go(t>=240?t-240:t+120,a,r),Go(t,a,r),Go(t<120?t+240:t-120,a,r),this.opacity)},clamp(){return new Mt(ep(this.h),Ei(this.s),Ei(this.l),Di(this.opacity))},displayable(){return(0<=this.s&&this.s<=1||isNaN(this.s))&&0<=this.l&&this.l<=1&&0<=this.opacity&&this.opacity<=1},formatHsl(){let t=Di(this.opacity);return`${t===1?"hsl(":"hsla("}${ep(this.h)}, ${Ei(this.s)*100}%, ${Ei(this.l)*100}%${t===1?")":`, ${t})`}`}}));function ep(t){return t=(t||0)%360,t<0?t+360:t}function Ei(t){return Math.max(0,Math.min(1,t||0))}function Go(t,e,n){return(t<60?e+(n-e)*t/60:t<180?n:t<240?e+(n-e)*(240-t)/60:e)*255}var ip=Math.PI/180,sp=180/Math.PI,Vi=18,op=.96422,cp=1,fp=.82521,up=4/29,Sr=6/29,lp=3*Sr*Sr,X2=Sr*Sr*Sr;function gp(t){if(t instanceof Bt)return new Bt(t.l,t.a,t.b,t.opacity);if(t instanceof en)return hp(t);t instanceof Xe||(t=Wo(t));var e=zo(t.r),n=zo(t.g),r=zo(t.b),a=Uo((.2225045*e+.7168786*n+.0606169*r)/cp),i,s;return e===n&&n===r?i=s=a:(i=Uo((.4360747*e+.3850649*n+.1430804*r)/op),s=Uo((.0139322*e+.0971045*n+.7141733*r)/fp)),new Bt(116*a-16,500*(i-a),200*(a-s),t.opacity)}function pp(t,e,n,r){return arguments.length===1?gp(t):new Bt(t,e,n,r??1)}function Bt(t,e,n,r){this.l=+t,this.a=+e,this.b=+n,this.opacity=+r}wr(Bt,pp,ua(dn,{brighter(t){return new Bt(this.l+Vi*(t??1),this.a,this.b,this.opacity)},darker(t){return new Bt(this.l-Vi*(t??1),this.a,this.b,this.opacity)},rgb(){var t=(this.l+16)/116,e=isNaN(this.a)?t:t+this.a/500,n=isNaN(this.b)?t:t-this.b/200;return e=op*ko(e),t=cp*ko(t),n=fp*ko(n),new Xe(bo(3.1338561*e-1.6168667*t-.4906146*n),bo(-.9787684*e+1.9161415*t+.033454*n),bo(.0719453*e-.2289914*t+1.4052427*n),this.opacity)}}));function Uo(t){return t>X2?Math.pow(t,1/3):t/lp+up}function ko(t){return t>Sr?t*t*t:lp*(t-up)}function bo(t){return 255*(t<=.0031308?12.92*t:1.055*Math.pow(t,1/2.4)-.055)}function zo(t){return(t/=255)<=.04045?t/12.92:Math.pow((t+.055)/1.055,2.4)}function Y2(t){if(t instanceof en)return new en(t.h,t.c,t.l,t.opacity);if(t instanceof Bt||(t=gp(t)),t.a===0&&t.b===0)return new en(NaN,0<t.l&&t.l<100?0:NaN,t.l,t.opacity);var e=Math.atan2(t.b,t.a)*sp;return new en(e<0?e+360:e,Math.sqrt(t.a*t.a+t.b*t.b),t.l,t.opacity)}function _i(t,e,n,r){return arguments.length===1?Y2(t):new en(t,e,n,r??1)}function en(t,e,n,r){this.h=+t,this.c=+e,this.l=+n,this.opacity=+r}function hp(t){if(isNaN(t.h))return new Bt(t.l,0,0,t.opacity);var e=t.h*ip;return new Bt(t.l,Math.cos(e)*t.c,Math.sin(e)*t.c,t.opacity)}wr(en,_i,ua(dn,{brighter(t){return new en(this.h,this.c,this.l+Vi*(t??1),this.opacity)},darker(t){return new en(this.h,this.c,this.l-Vi*(t??1),this.opacity)},rgb(){return hp(this).rgb()}}));var vp=-.14861,Ao=1.78277,Po=-.29227,Fi=-.90649,fa=1.97294,tp=fa*Fi,np=fa*Ao,rp=Ao*Po-Fi*vp;function q2(t){if(t instanceof Kn)return new Kn(t.h,t.s,t.l,t.opacity);t instanceof Xe||(t=Wo(t));var e=t.r/255,n=t.g/255,r=t.b/255,a=(rp*r+tp*e-np*n)/(rp+tp-np),i=r-a,s=(fa*(n-a)-Po*i)/Fi,o=Math.sqrt(s*s+i*i)/(fa*a*(1-a)),c=o?Math.atan2(s,i)*sp-120:NaN;return new Kn(c<0?c+360:c,o,a,t.opacity)}function Ni(t,e,n,r){return arguments.length===1?q2(t):new Kn(t,e,n,r??1)}function Kn(t,e,n,r){this.h=+t,this.s=+e,this.l=+n,this.opacity=+r}wr(Kn,Ni,ua(dn,{brighter(t){return t=t==null?Cr:Math.pow(Cr,t),new Kn(this.h,this.s,this.l*t,this.opacity)},darker(t){return t=t==null?Xn:Math.pow(Xn,t),new Kn(this.h,this.s,this.l*t,this.opacity)},rgb(){var t=isNaN(this.h)?0:(this.h+120)*ip,e=+this.l,n=isNaN(this.s)?0:this.s*e*(1-e),r=Math.cos(t),a=Math.sin(t);return new Xe(255*(e+n*(vp*r+Ao*a)),255*(e+n*(Po*r+Fi*a)),255*(e+n*(fa*r)),this.opacity)}}));function yp(t,e,n,r,a){var i=t*t,s=i*t;return((1-3*t+3*i-s)*e+(4-6*i+3*s)*n+(1+3*t+3*i-3*s)*r+s*a)/6}function Z2(t){var e=t.length-1;return function(n){var r=n<=0?n=0:n>=1?(n=1,e-1):Math.floor(n*e),a=t[r],i=t[r+1],s=r>0?t[r-1]:2*a-i,o=r<e-1?t[r+2]:2*i-a;return yp((n-r/e)*e,s,a,i,o)}}function Q2(t){var e=t.length;return function(n){var r=Math.floor(((n%=1)<0?++n:n)*e),a=t[(r+e-1)%e],i=t[r%e],s=t[(r+1)%e],o=t[(r+2)%e];return yp((n-r/e)*e,a,i,s,o)}}var Gi=t=>()=>t;function mp(t,e){return function(n){return t+n*e}}function J2(t,e,n){return t=Math.pow(t,n),e=Math.pow(e,n)-t,n=1/n,function(r){return Math.pow(t+r*e,n)}}function $o(t,e){var n=e-t;return n?mp(t,n>180||n<-180?n-360*Math.round(n/360):n):Gi(isNaN(t)?e:t)}function ew(t){return(t=+t)==1?st:function(e,n){return n-e?J2(e,n,t):Gi(isNaN(e)?n:e)}}function st(t,e){var n=e-t;return n?mp(t,n):Gi(isNaN(t)?e:t)}var dp=(function t(e){var n=ew(e);function r(a,i){var s=n((a=la(a)).r,(i=la(i)).r),o=n(a.g,i.g),c=n(a.b,i.b),f=st(a.opacity,i.opacity);return function(u){return a.r=s(u),a.g=o(u),a.b=c(u),a.opacity=f(u),a+""}}return r.gamma=t,r})(1);function Sp(t){return function(e){var n=e.length,r=new Array(n),a=new Array(n),i=new Array(n),s,o;for(s=0;s<n;++s)o=la(e[s]),r[s]=o.r||0,a[s]=o.g||0,i[s]=o.b||0;return r=t(r),a=t(a),i=t(i),o.opacity=1,function(c){return o.r=r(c),o.g=a(c),o.b=i(c),o+""}}}var CB=Sp(Z2),wB=Sp(Q2);function tw(t,e){e||(e=[]);var n=t?Math.min(e.length,t.length):0,r=e.slice(),a;return function(i){for(a=0;a<n;++a)r[a]=t[a]*(1-i)+e[a]*i;return r}}function nw(t){return ArrayBuffer.isView(t)&&!(t instanceof DataView)}function rw(t,e){var n=e?e.length:0,r=t?Math.min(n,t.length):0,a=new Array(r),i=new Array(n),s;for(s=0;s<r;++s)a[s]=Ui(t[s],e[s]);for(;s<n;++s)i[s]=e[s];return function(o){for(s=0;s<r;++s)i[s]=a[s](o);return i}}function aw(t,e){var n=new Date;return t=+t,e=+e,function(r){return n.setTime(t*(1-r)+e*r),n}}function Et(t,e){return t=+t,e=+e,function(n){return t*(1-n)+e*n}}function iw(t,e){var n={},r={},a;(t===null||typeof t!="object")&&(t={}),(e===null||typeof e!="object")&&(e={});for(a in e)a in t?n[a]=Ui(t[a],e[a]):r[a]=e[a];return function(i){for(a in n)r[a]=n[a](i);return r}}var Io=/[-+]?(?:\d+\.?\d*|\.?\d+)(?:[eE][-+]?\d+)?/g,Ho=new RegExp(Io.source,"g");function sw(t){return function(){return t}}function ow(t){return function(e){return t(e)+""}}function cw(t,e){var n=Io.lastIndex=Ho.lastIndex=0,r,a,i,s=-1,o=[],c=[];for(t=t+"",e=e+"";(r=Io.exec(t))&&(a=Ho.exec(e));)(i=a.index)>n&&(i=e.slice(n,i),o[s]?o[s]+=i:o[++s]=i),(r=r[0])===(a=a[0])?o[s]?o[s]+=a:o[++s]=a:(o[++s]=null,c.push({i:s,x:Et(r,a)})),n=Ho.lastIndex;return n<e.length&&(i=e.slice(n),o[s]?o[s]+=i:o[++s]=i),o.length<2?c[0]?ow(c[0].x):sw(e):(e=c.length,function(f){for(var u=0,g;u<e;++u)o[(g=c[u]).i]=g.x(f);return o.join("")})}function Ui(t,e){var n=typeof e,r;return e==null||n==="boolean"?Gi(e):(n==="number"?Et:n==="string"?(r=Or(e))?(e=r,dp):cw:e instanceof Or?dp:e instanceof Date?aw:nw(e)?tw:Array.isArray(e)?rw:typeof e.valueOf!="function"&&typeof e.toString!="function"||isNaN(e)?iw:Et)(t,e)}function Cp(t,e){return t=+t,e=+e,function(n){return Math.round(t*(1-n)+e*n)}}var Tp=180/Math.PI,jo={translateX:0,translateY:0,rotate:0,skewX:0,scaleX:1,scaleY:1};function wp(t,e,n,r,a,i){var s,o,c;return(s=Math.sqrt(t*t+e*e))&&(t/=s,e/=s),(c=t*n+e*r)&&(n-=t*c,r-=e*c),(o=Math.sqrt(n*n+r*r))&&(n/=o,r/=o,c/=o),t*r<e*n&&(t=-t,e=-e,c=-c,s=-s),{translateX:a,translateY:i,rotate:Math.atan2(e,t)*Tp,skewX:Math.atan(c)*Tp,scaleX:s,scaleY:o}}var Bi;function fw(t){let e=new(typeof DOMMatrix=="function"?DOMMatrix:WebKitCSSMatrix)(t+"");return e.isIdentity?jo:wp(e.a,e.b,e.c,e.d,e.e,e.f)}function uw(t){return t==null||(Bi||(Bi=document.createElementNS("http://www.w3.org/2000/svg","g")),Bi.setAttribute("transform",t),!(t=Bi.transform.baseVal.consolidate()))?jo:(t=t.matrix,wp(t.a,t.b,t.c,t.d,t.e,t.f))}function Op(t,e,n,r){function a(f){return f.length?f.pop()+" ":""}function i(f,u,g,l,h,y){if(f!==g||u!==l){var p=h.push("translate(",null,e,null,n);y.push({i:p-4,x:Et(f,g)},{i:p-2,x:Et(u,l)})}else(g||l)&&h.push("translate("+g+e+l+n)}function s(f,u,g,l){f!==u?(f-u>180?u+=360:u-f>180&&(f+=360),l.push({i:g.push(a(g)+"rotate(",null,r)-2,x:Et(f,u)})):u&&g.push(a(g)+"rotate("+u+r)}function o(f,u,g,l){f!==u?l.push({i:g.push(a(g)+"skewX(",null,r)-2,x:Et(f,u)}):u&&g.push(a(g)+"skewX("+u+r)}function c(f,u,g,l,h,y){if(f!==g||u!==l){var p=h.push(a(h)+"scale(",null,",",null,")");y.push({i:p-4,x:Et(f,g)},{i:p-2,x:Et(u,l)})}else(g!==1||l!==1)&&h.push(a(h)+"scale("+g+","+l+")")}return function(f,u){var g=[],l=[];return f=t(f),u=t(u),i(f.translateX,f.translateY,u.translateX,u.translateY,g,l),s(f.rotate,u.rotate,g,l),o(f.skewX,u.skewX,g,l),c(f.scaleX,f.scaleY,u.scaleX,u.scaleY,g,l),f=u=null,function(h){for(var y=-1,p=l.length,v;++y<p;)g[(v=l[y]).i]=v.x(h);return g.join("")}}}var OB=Op(fw,"px, ","px)","deg)"),RB=Op(uw,", ",")",")"),lw=1e-12;function xp(t){return((t=Math.exp(t))+1/t)/2}function gw(t){return((t=Math.exp(t))-1/t)/2}function pw(t){return((t=Math.exp(2*t))-1)/(t+1)}var MB=(function t(e,n,r){function a(i,s){var o=i[0],c=i[1],f=i[2],u=s[0],g=s[1],l=s[2],h=u-o,y=g-c,p=h*h+y*y,v,x;if(p<lw)x=Math.log(l/f)/e,v=function(D){return[o+D*h,c+D*y,f*Math.exp(e*D*x)]};else{var S=Math.sqrt(p),T=(l*l-f*f+r*p)/(2*f*n*S),d=(l*l-f*f-r*p)/(2*l*n*S),C=Math.log(Math.sqrt(T*T+1)-T),w=Math.log(Math.sqrt(d*d+1)-d);x=(w-C)/e,v=function(D){var m=D*x,M=xp(C),R=f/(n*S)*(M*pw(e*m+C)-gw(C));return[o+R*h,c+R*y,f*M/xp(e*m+C)]}}return v.duration=Math.abs(x)*1e3*e/Math.SQRT2,v}return a.rho=function(i){var s=Math.max(.001,+i),o=s*s,c=o*o;return t(s,o,c)},a})(Math.SQRT2,2,4);function Rp(t){return function(e,n){var r=t((e=Li(e)).h,(n=Li(n)).h),a=st(e.s,n.s),i=st(e.l,n.l),s=st(e.opacity,n.opacity);return function(o){return e.h=r(o),e.s=a(o),e.l=i(o),e.opacity=s(o),e+""}}}var EB=Rp($o),DB=Rp(st);function Mp(t){return function(e,n){var r=t((e=_i(e)).h,(n=_i(n)).h),a=st(e.c,n.c),i=st(e.l,n.l),s=st(e.opacity,n.opacity);return function(o){return e.h=r(o),e.c=a(o),e.l=i(o),e.opacity=s(o),e+""}}}var VB=Mp($o),LB=Mp(st);function Ep(t){return(function e(n){n=+n;function r(a,i){var s=t((a=Ni(a)).h,(i=Ni(i)).h),o=st(a.s,i.s),c=st(a.l,i.l),f=st(a.opacity,i.opacity);return function(u){return a.h=s(u),a.s=o(u),a.l=c(Math.pow(u,n)),a.opacity=f(u),a+""}}return r.gamma=e,r})(1)}var _B=Ep($o),FB=Ep(st);function Ko(t){return function(){return t}}function Xo(t){return+t}var Dp=[0,1];function Rr(t){return t}function Yo(t,e){return(e-=t=+t)?function(n){return(n-t)/e}:Ko(isNaN(e)?NaN:.5)}function hw(t,e){var n;return t>e&&(n=t,t=e,e=n),function(r){return Math.max(t,Math.min(e,r))}}function vw(t,e,n){var r=t[0],a=t[1],i=e[0],s=e[1];return a<r?(r=Yo(a,r),i=n(s,i)):(r=Yo(r,a),i=n(i,s)),function(o){return i(r(o))}}function dw(t,e,n){var r=Math.min(t.length,e.length)-1,a=new Array(r),i=new Array(r),s=-1;for(t[r]<t[0]&&(t=t.slice().reverse(),e=e.slice().reverse());++s<r;)a[s]=Yo(t[s],t[s+1]),i[s]=n(e[s],e[s+1]);return function(o){var c=Ag(t,o,1,r)-1;return i[c](a[c](o))}}function Vp(t,e){return e.domain(t.domain()).range(t.range()).interpolate(t.interpolate()).clamp(t.clamp()).unknown(t.unknown())}function Tw(){var t=Dp,e=Dp,n=Ui,r,a,i,s=Rr,o,c,f;function u(){var l=Math.min(t.length,e.length);return s!==Rr&&(s=hw(t[0],t[l-1])),o=l>2?dw:vw,c=f=null,g}function g(l){return l==null||isNaN(l=+l)?i:(c||(c=o(t.map(r),e,n)))(r(s(l)))}return g.invert=function(l){return s(a((f||(f=o(e,t.map(r),Et)))(l)))},g.domain=function(l){return arguments.length?(t=Array.from(l,Xo),u()):t.slice()},g.range=function(l){return arguments.length?(e=Array.from(l),u()):e.slice()},g.rangeRound=function(l){return e=Array.from(l),n=Cp,u()},g.clamp=function(l){return arguments.length?(s=l?!0:Rr,u()):s!==Rr},g.interpolate=function(l){return arguments.length?(n=l,u()):n},g.unknown=function(l){return arguments.length?(i=l,g):i},function(l,h){return r=l,a=h,u()}}function qo(){return Tw()(Rr,Rr)}function xw(t){return Math.abs(t=Math.round(t))>=1e21?t.toLocaleString("en").replace(/,/g,""):t.toString(10)}function bi(t,e){if(!isFinite(t)||t===0)return null;var n=(t=e?t.toExponential(e-1):t.toExponential()).indexOf("e"),r=t.slice(0,n);return[r.length>1?r[0]+r.slice(2):r,+t.slice(n+1)]}function Mr(t){return t=bi(Math.abs(t)),t?t[1]:NaN}function yw(t,e){return function(n,r){for(var a=n.length,i=[],s=0,o=t[0],c=0;a>0&&o>0&&(c+o+1>r&&(o=Math.max(1,r-c)),i.push(n.substring(a-=o,a+o)),!((c+=o+1)>r));)o=t[s=(s+1)%t.length];return i.reverse().join(e)}}function mw(t){return function(e){return e.replace(/[0-9]/g,function(n){return t[+n]})}}var Sw=/^(?:(.)?([<>=^]))?([+\-( ])?([$#])?(0)?(\d+)?(,)?(\.\d+)?(~)?([a-z%])?$/i;function ga(t){if(!(e=Sw.exec(t)))throw new Error("invalid format: "+t);var e;return new Zo({fill:e[1],align:e[2],sign:e[3],symbol:e[4],zero:e[5],width:e[6],comma:e[7],precision:e[8]&&e[8].slice(1),trim:e[9],type:e[10]})}ga.prototype=Zo.prototype;function Zo(t){this.fill=t.fill===void 0?" ":t.fill+"",this.align=t.align===void 0?">":t.align+"",this.sign=t.sign===void 0?"-":t.sign+"",this.symbol=t.symbol===void 0?"":t.symbol+"",this.zero=!!t.zero,this.width=t.width===void 0?void 0:+t.width,this.comma=!!t.comma,this.precision=t.precision===void 0?void 0:+t.precision,this.trim=!!t.trim,this.type=t.type===void 0?"":t.type+""}Zo.prototype.toString=function(){return this.fill+this.align+this.sign+this.symbol+(this.zero?"0":"")+(this.width===void 0?"":Math.max(1,this.width|0))+(this.comma?",":"")+(this.precision===void 0?"":"."+Math.max(0,this.precision|0))+(this.trim?"~":"")+this.type};function Cw(t){e:for(var e=t.length,n=1,r=-1,a;n<e;++n)switch(t[n]){case".":r=a=n;break;case"0":r===0&&(r=n),a=n;break;default:if(!+t[n])break e;r>0&&(r=0);break}return r>0?t.slice(0,r)+t.slice(a+1):t}var zi;function ww(t,e){var n=bi(t,e);if(!n)return zi=void 0,t.toPrecision(e);var r=n[0],a=n[1],i=a-(zi=Math.max(-8,Math.min(8,Math.floor(a/3)))*3)+1,s=r.length;return i===s?r:i>s?r+new Array(i-s+1).join("0"):i>0?r.slice(0,i)+"."+r.slice(i):"0."+new Array(1-i).join("0")+bi(t,Math.max(0,e+i-1))[0]}function Lp(t,e){var n=bi(t,e);if(!n)return t+"";var r=n[0],a=n[1];return a<0?"0."+new Array(-a).join("0")+r:r.length>a+1?r.slice(0,a+1)+"."+r.slice(a+1):r+new Array(a-r.length+2).join("0")}var _p={"%":(t,e)=>(t*100).toFixed(e),b:t=>Math.round(t).toString(2),c:t=>t+"",d:xw,e:(t,e)=>t.toExponential(e),f:(t,e)=>t.toFixed(e),g:(t,e)=>t.toPrecision(e),o:t=>Math.round(t).toString(8),p:(t,e)=>Lp(t*100,e),r:Lp,s:ww,X:t=>Math.round(t).toString(16).toUpperCase(),x:t=>Math.round(t).toString(16)};function Fp(t){return t}var Np=Array.prototype.map,Bp=["y","z","a","f","p","n","\xB5","m","","k","M","G","T","P","E","Z","Y"];function Ow(t){var e=t.grouping===void 0||t.thousands===void 0?Fp:yw(Np.call(t.grouping,Number),t.thousands+""),n=t.currency===void 0?"":t.currency[0]+"",r=t.currency===void 0?"":t.currency[1]+"",a=t.decimal===void 0?".":t.decimal+"",i=t.numerals===void 0?Fp:mw(Np.call(t.numerals,String)),s=t.percent===void 0?"%":t.percent+"",o=t.minus===void 0?"\u2212":t.minus+"",c=t.nan===void 0?"NaN":t.nan+"";function f(g,l){g=ga(g);var h=g.fill,y=g.align,p=g.sign,v=g.symbol,x=g.zero,S=g.width,T=g.comma,d=g.precision,C=g.trim,w=g.type;w==="n"?(T=!0,w="g"):_p[w]||(d===void 0&&(d=12),C=!0,w="g"),(x||h==="0"&&y==="=")&&(x=!0,h="0",y="=");var D=(l&&l.prefix!==void 0?l.prefix:"")+(v==="$"?n:v==="#"&&/[boxX]/.test(w)?"0"+w.toLowerCase():""),m=(v==="$"?r:/[%p]/.test(w)?s:"")+(l&&l.suffix!==void 0?l.suffix:""),M=_p[w],R=/[defgprs%]/.test(w);d=d===void 0?6:/[gprs]/.test(w)?Math.max(1,Math.min(21,d)):Math.max(0,Math.min(20,d));function E(V){var N=D,_=m,L,B,b;if(w==="c")_=M(V)+_,V="";else{V=+V;var G=V<0||1/V<0;if(V=isNaN(V)?c:M(Math.abs(V),d),C&&(V=Cw(V)),G&&+V==0&&p!=="+"&&(G=!1),N=(G?p==="("?p:o:p==="-"||p==="("?"":p)+N,_=(w==="s"&&!isNaN(V)&&zi!==void 0?Bp[8+zi/3]:"")+_+(G&&p==="("?")":""),R){for(L=-1,B=V.length;++L<B;)if(b=V.charCodeAt(L),48>b||b>57){_=(b===46?a+V.slice(L+1):V.slice(L))+_,V=V.slice(0,L);break}}}T&&!x&&(V=e(V,1/0));var U=N.length+V.length+_.length,z=U<S?new Array(S-U+1).join(h):"";switch(T&&x&&(V=e(z+V,z.length?S-_.length:1/0),z=""),y){case"<":V=N+V+_+z;break;case"=":V=N+z+V+_;break;case"^":V=z.slice(0,U=z.length>>1)+N+V+_+z.slice(U);break;default:V=z+N+V+_;break}return i(V)}return E.toString=function(){return g+""},E}function u(g,l){var h=Math.max(-8,Math.min(8,Math.floor(Mr(l)/3)))*3,y=Math.pow(10,-h),p=f((g=ga(g),g.type="f",g),{suffix:Bp[8+h/3]});return function(v){return p(y*v)}}return{format:f,formatPrefix:u}}var ki,Qo,Jo;Rw({thousands:",",grouping:[3],currency:["$",""]});function Rw(t){return ki=Ow(t),Qo=ki.format,Jo=ki.formatPrefix,ki}function Gp(t){return Math.max(0,-Mr(Math.abs(t)))}function Up(t,e){return Math.max(0,Math.max(-8,Math.min(8,Math.floor(Mr(e)/3)))*3-Mr(Math.abs(t)))}function kp(t,e){return t=Math.abs(t),e=Math.abs(e)-t,Math.max(0,Mr(e)-Mr(t))+1}function ec(t,e,n,r){var a=jg(t,e,n),i;switch(r=ga(r??",f"),r.type){case"s":{var s=Math.max(Math.abs(t),Math.abs(e));return r.precision==null&&!isNaN(i=Up(a,s))&&(r.precision=i),Jo(r,s)}case"":case"e":case"g":case"p":case"r":{r.precision==null&&!isNaN(i=kp(a,Math.max(Math.abs(t),Math.abs(e))))&&(r.precision=i-(r.type==="e"));break}case"f":case"%":{r.precision==null&&!isNaN(i=Gp(a))&&(r.precision=i-(r.type==="%")*2);break}}return Qo(r)}function Mw(t){var e=t.domain;return t.ticks=function(n){var r=e();return Ig(r[0],r[r.length-1],n??10)},t.tickFormat=function(n,r){var a=e();return ec(a[0],a[a.length-1],n??10,r)},t.nice=function(n){n==null&&(n=10);var r=e(),a=0,i=r.length-1,s=r[a],o=r[i],c,f,u=10;for(o<s&&(f=s,s=o,o=f,f=a,a=i,i=f);u-- >0;){if(f=Ri(s,o,n),f===c)return r[a]=s,r[i]=o,e(r);if(f>0)s=Math.floor(s/f)*f,o=Math.ceil(o/f)*f;else if(f<0)s=Math.ceil(s*f)/f,o=Math.floor(o*f)/f;else break;c=f}return t},t}function Yn(){var t=qo();return t.copy=function(){return Vp(t,Yn())},$g.apply(t,arguments),Mw(t)}var Ew=[[-1,0,0],[1,0,0],[0,-1,0],[0,1,0],[0,0,-1],[0,0,1]],zp=[[8,7,11,3],[9,1,10,5],[4,9,0,8],[2,11,6,10],[0,3,2,1],[4,5,6,7]],Wi=[[0,1],[1,3],[2,3],[0,2],[4,5],[5,7],[6,7],[4,6],[0,4],[1,5],[3,7],[2,6]],Wp=[0,1,0,1,0,1,0,1,2,2,2,2],Ee=[[1,2],[1,2],[0,2],[0,2],[0,1],[0,1]],re=new Float64Array(3),Ai=new Float64Array(3),ye=new Float64Array(3),Zn=new Float64Array(3),qn=new Float64Array(3),Pi=new Float64Array(3),tc=new Float64Array(16);function nc(t,e){t.strokeStyle=e.strokeColor,t.lineWidth=e.strokeSize,t.fillStyle=e.fontColor,t.font=`${e.fontStyle} ${e.fontSize}px ${e.fontFamily}`}function Ap(t){let e=[],n=[];for(let r=0;r<3;r++){let a=Yn().domain([t[r*2],t[r*2+1]]);e[r]=a.ticks(5);let i=a.tickFormat(5);n[r]=e[r].map(i)}return{ticks:e,tickStrings:n}}function Dw(t,e){e.classHierarchy.push("vtkCubeAxesActorHelper"),t.setRenderable=n=>{e.renderable!==n&&(e.renderable=n,e.tmActor.addTexture(e.renderable.getTmTexture()),e.tmActor.setProperty(n.getProperty()),e.tmActor.setParentProp(n),t.modified())},t.createPolyDataForOneLabel=(n,r,a,i,s,o,c)=>{let f=e.renderable.get_tmAtlas().get(n);if(!f)return;let u=e.renderable.getTextPolyData().getPoints().getData(),g=e.lastSize;re[0]=u[r*3],re[1]=u[r*3+1],re[2]=u[r*3+2],W.transformMat4(ye,re,a),ye[0]+=.1,W.transformMat4(Ai,ye,i),W.subtract(qn,Ai,re),ye[0]-=.1,ye[1]+=.1,W.transformMat4(Ai,ye,i),W.subtract(Pi,Ai,re);for(let y=0;y<3;y++)qn[y]/=.5*.1*g[0],Pi[y]/=.5*.1*g[1];let l=c.ptIdx,h=c.cellIdx;re[0]=u[r*3],re[1]=u[r*3+1],re[2]=u[r*3+2],s[0]<-.5?W.scale(ye,qn,s[0]*o-f.width):s[0]>.5?W.scale(ye,qn,s[0]*o):W.scale(ye,qn,s[0]*o-f.width/2),W.add(re,re,ye),W.scale(ye,Pi,s[1]*o-f.height/2),W.add(re,re,ye),c.points[l*3]=re[0],c.points[l*3+1]=re[1],c.points[l*3+2]=re[2],c.tcoords[l*2]=f.tcoords[0],c.tcoords[l*2+1]=f.tcoords[1],l++,W.scale(ye,qn,f.width),W.add(re,re,ye),c.points[l*3]=re[0],c.points[l*3+1]=re[1],c.points[l*3+2]=re[2],c.tcoords[l*2]=f.tcoords[2],c.tcoords[l*2+1]=f.tcoords[3],l++,W.scale(ye,Pi,f.height),W.add(re,re,ye),c.points[l*3]=re[0],c.points[l*3+1]=re[1],c.points[l*3+2]=re[2],c.tcoords[l*2]=f.tcoords[4],c.tcoords[l*2+1]=f.tcoords[5],l++,W.scale(ye,qn,f.width),W.subtract(re,re,ye),c.points[l*3]=re[0],c.points[l*3+1]=re[1],c.points[l*3+2]=re[2],c.tcoords[l*2]=f.tcoords[6],c.tcoords[l*2+1]=f.tcoords[7],l++,c.polys[h*4]=3,c.polys[h*4+1]=l-4,c.polys[h*4+2]=l-3,c.polys[h*4+3]=l-2,h++,c.polys[h*4]=3,c.polys[h*4+1]=l-4,c.polys[h*4+2]=l-2,c.polys[h*4+3]=l-1,c.ptIdx+=4,c.cellIdx+=2},t.updateTexturePolyData=()=>{let n=e.camera.getCompositeProjectionMatrix(e.lastAspectRatio,-1,1);F.transpose(n,n);let r=e.renderable.getTextValues().length,a=r*4,i=r*2,s=new Float64Array(a*3),o=new Uint16Array(i*4),c=new Float32Array(a*2);F.invert(tc,n);let f={ptIdx:0,cellIdx:0,polys:o,points:s,tcoords:c},u=0,g=0,l=0,h=e.renderable.getTextPolyData().getPoints().getData(),y=e.renderable.getTextValues();for(;u<h.length/3;){re[0]=h[u*3],re[1]=h[u*3+1],re[2]=h[u*3+2],W.transformMat4(ye,re,n),re[0]=h[u*3+3],re[1]=h[u*3+4],re[2]=h[u*3+5],W.transformMat4(Zn,re,n),W.subtract(ye,ye,Zn);let v=[ye[0],ye[1]];Gs(v),t.createPolyDataForOneLabel(y[g],u,n,tc,v,e.renderable.getAxisTitlePixelOffset(),f),u+=2,g++;for(let x=0;x<e.renderable.getTickCounts()[l];x++)t.createPolyDataForOneLabel(y[g],u,n,tc,v,e.renderable.getTickLabelPixelOffset(),f),u++,g++;l++}let p=Y.newInstance({numberOfComponents:2,values:c,name:"TextureCoordinates"});e.tmPolyData.getPointData().setTCoords(p),e.tmPolyData.getPoints().setData(s,3),e.tmPolyData.getPoints().modified(),e.tmPolyData.getPolys().setData(o,1),e.tmPolyData.getPolys().modified(),e.tmPolyData.modified()},t.updateAPISpecificData=(n,r,a)=>{(e.lastSize[0]!==n[0]||e.lastSize[1]!==n[1])&&(e.lastSize[0]=n[0],e.lastSize[1]=n[1],e.lastAspectRatio=n[0]/n[1],e.forceUpdate=!0),e.camera=r,t.updateTexturePolyData()}}var Vw=O.newInstance((t,e,n={renderable:null})=>{Object.assign(e,{},n),O.obj(t,e),e.tmPolyData=We.newInstance(),e.tmMapper=hn.newInstance(),e.tmMapper.setInputData(e.tmPolyData),e.tmActor=gn.newInstance({parentProp:t}),e.tmActor.setMapper(e.tmMapper),O.setGet(t,e,["renderable"]),O.get(t,e,["lastSize","lastAspectRatio","axisTextStyle","tickTextStyle","tmActor","ticks"]),e.forceUpdate=!1,e.lastRedrawTime={},O.obj(e.lastRedrawTime,{mtime:0}),e.lastRebuildTime={},O.obj(e.lastRebuildTime,{mtime:0}),e.lastSize=[-1,-1],e.lastTickBounds=[],Dw(t,e)},"vtkCubeAxesActorHelper");function Lw(t,e){e.classHierarchy.push("vtkCubeAxesActor"),t.setCamera=r=>{e.camera!==r&&(e.cameraModifiedSub&&(e.cameraModifiedSub.unsubscribe(),e.cameraModifiedSub=null),e.camera=r,r&&(e.cameraModifiedSub=r.onModified(t.update)),t.update(),t.modified())},t.computeFacesToDraw=()=>{let r=e.camera.getViewMatrix();F.transpose(r,r);let a=!1,i=$.getDiagonalLength(e.dataBounds),s=Math.sin(e.faceVisibilityAngle*Math.PI/180);for(let o=0;o<6;o++){let c=!1,f=Math.floor(o/2),u=(f+1)%3,g=(f+2)%3;e.dataBounds[u*2]!==e.dataBounds[u*2+1]&&e.dataBounds[g*2]!==e.dataBounds[g*2+1]&&(re[f]=e.dataBounds[o]-.1*i*Ew[o][f],re[u]=.5*(e.dataBounds[u*2]+e.dataBounds[u*2+1]),re[g]=.5*(e.dataBounds[g*2]+e.dataBounds[g*2+1]),W.transformMat4(ye,re,r),re[f]=e.dataBounds[o],W.transformMat4(Zn,re,r),W.subtract(ye,Zn,ye),W.normalize(ye,ye),c=ye[2]>s,e.camera.getParallelProjection()||(W.normalize(Zn,Zn),c=W.dot(Zn,ye)>s)),c!==e.lastFacesToDraw[o]&&(e.lastFacesToDraw[o]=c,a=!0)}return a},t.updatePolyData=(r,a,i)=>{let s=0,o=0;s+=8;let c=0;for(let h=0;h<12;h++)a[h]>0&&c++;if(o+=c,e.gridLines)for(let h=0;h<6;h++)r[h]&&(s+=i[Ee[h][0]].length*2+i[Ee[h][1]].length*2,o+=i[Ee[h][0]].length+i[Ee[h][1]].length);let f=new Float64Array(s*3),u=new Uint32Array(o*3),g=0,l=0;for(let h=0;h<2;h++)for(let y=0;y<2;y++)for(let p=0;p<2;p++)f[g*3]=e.dataBounds[p],f[g*3+1]=e.dataBounds[2+y],f[g*3+2]=e.dataBounds[4+h],g++;for(let h=0;h<12;h++)a[h]>0&&(u[l*3]=2,u[l*3+1]=Wi[h][0],u[l*3+2]=Wi[h][1],l++);if(e.gridLines){for(let h=0;h<6;h++)if(r[h]){let y=Math.floor(h/2),p=i[Ee[h][0]];for(let v=0;v<p.length;v++)f[g*3+y]=e.dataBounds[h],f[g*3+Ee[h][0]]=p[v],f[g*3+Ee[h][1]]=e.dataBounds[Ee[h][1]*2],g++,f[g*3+y]=e.dataBounds[h],f[g*3+Ee[h][0]]=p[v],f[g*3+Ee[h][1]]=e.dataBounds[Ee[h][1]*2+1],g++,u[l*3]=2,u[l*3+1]=g-2,u[l*3+2]=g-1,l++;p=i[Ee[h][1]];for(let v=0;v<p.length;v++)f[g*3+y]=e.dataBounds[h],f[g*3+Ee[h][1]]=p[v],f[g*3+Ee[h][0]]=e.dataBounds[Ee[h][0]*2],g++,f[g*3+y]=e.dataBounds[h],f[g*3+Ee[h][1]]=p[v],f[g*3+Ee[h][0]]=e.dataBounds[Ee[h][0]*2+1],g++,u[l*3]=2,u[l*3+1]=g-2,u[l*3+2]=g-1,l++}}e.polyData.getPoints().setData(f,3),e.polyData.getPoints().modified(),e.polyData.getLines().setData(u,1),e.polyData.getLines().modified(),e.polyData.modified()},t.updateTextData=(r,a,i,s)=>{let o=0;for(let h=0;h<12;h++)a[h]===1&&(o+=2,o+=i[Wp[h]].length);let c=e.polyData.getPoints().getData(),f=new Float64Array(o*3),u=0,g=0,l=0;for(let h=0;h<6;h++)if(r[h])for(let y=0;y<4;y++){let p=zp[h][y];if(a[p]===1){let v=Wp[p],x=Wi[p][0]*3,S=Wi[p][1]*3;f[u*3]=.5*(c[x]+c[S]),f[u*3+1]=.5*(c[x+1]+c[S+1]),f[u*3+2]=.5*(c[x+2]+c[S+2]),u++;let T=Math.floor(h/2);f[u*3+T]=e.dataBounds[h],f[u*3+Ee[h][0]]=.5*(e.dataBounds[Ee[h][0]*2]+e.dataBounds[Ee[h][0]*2+1]),f[u*3+Ee[h][1]]=.5*(e.dataBounds[Ee[h][1]*2]+e.dataBounds[Ee[h][1]*2+1]),u++,e.textValues[g]=e.axisLabels[v],g++;let d=(v+1)%3,C=(v+2)%3,w=i[v],D=s[v];e.tickCounts[l]=w.length;for(let m=0;m<w.length;m++)f[u*3+v]=w[m],f[u*3+d]=c[x+d],f[u*3+C]=c[x+C],u++,e.textValues[g]=D[m],g++;l++}}e.textPolyData.getPoints().setData(f,3),e.textPolyData.modified()},t.update=()=>{if(!e.camera)return;let r=t.computeFacesToDraw(),a=e.lastFacesToDraw,i=!1;for(let s=0;s<6;s++)e.dataBounds[s]!==e.lastTickBounds[s]&&(i=!0,e.lastTickBounds[s]=e.dataBounds[s]);if(r||i||e.forceUpdate){let s=new Array(12).fill(0);for(let c=0;c<6;c++)if(a[c])for(let f=0;f<4;f++)s[zp[c][f]]++;let o=e.generateTicks(e.dataBounds);t.updatePolyData(a,s,o.ticks),t.updateTextData(a,s,o.ticks,o.tickStrings),(i||e.forceUpdate)&&t.updateTextureAtlas(o.tickStrings)}e.forceUpdate=!1},t.updateTextureAtlas=r=>{e.tmContext.textBaseline="bottom",e.tmContext.textAlign="left",e._tmAtlas.clear();let a=0,i=1;for(let s=0;s<3;s++){if(!e._tmAtlas.has(e.axisLabels[s])){nc(e.tmContext,e.axisTextStyle);let o=e.tmContext.measureText(e.axisLabels[s]),c={height:o.actualBoundingBoxAscent+2,startingHeight:i,width:o.width+2,textStyle:e.axisTextStyle};e._tmAtlas.set(e.axisLabels[s],c),i+=c.height,a<c.width&&(a=c.width)}nc(e.tmContext,e.tickTextStyle);for(let o=0;o<r[s].length;o++)if(!e._tmAtlas.has(r[s][o])){let c=e.tmContext.measureText(r[s][o]),f={height:c.actualBoundingBoxAscent+2,startingHeight:i,width:c.width+2,textStyle:e.tickTextStyle};e._tmAtlas.set(r[s][o],f),i+=f.height,a<f.width&&(a=f.width)}}a=Rt(a),i=Rt(i),e._tmAtlas.forEach(s=>{s.tcoords=[0,(i-s.startingHeight-s.height)/i,s.width/a,(i-s.startingHeight-s.height)/i,s.width/a,(i-s.startingHeight)/i,0,(i-s.startingHeight)/i]}),e.tmCanvas.width=a,e.tmCanvas.height=i,e.tmContext.textBaseline="bottom",e.tmContext.textAlign="left",e.tmContext.clearRect(0,0,a,i),e._tmAtlas.forEach((s,o)=>{nc(e.tmContext,s.textStyle),e.tmContext.fillText(o,1,s.startingHeight+s.height-1)}),e.tmTexture.setCanvas(e.tmCanvas),e.tmTexture.modified()},t.onModified(()=>{e.forceUpdate=!0,t.update()}),t.setTickTextStyle=r=>{e.tickTextStyle={...e.tickTextStyle,...r},t.modified()},t.setAxisTextStyle=r=>{e.axisTextStyle={...e.axisTextStyle,...r},t.modified()},t.get_tmAtlas=()=>e._tmAtlas,t.computeBounds=()=>{t.update(),$.setBounds(e.bounds,e.gridActor.getBounds()),$.scaleAboutCenter(e.bounds,e.boundsScaleFactor,e.boundsScaleFactor,e.boundsScaleFactor)};let n=t.setProperty;t.setProperty=r=>{let a=n(r);return e.gridActor.setProperty(r),a}}function _w(t,e,n){return{boundsScaleFactor:1.3,camera:null,dataBounds:[...$.INIT_BOUNDS],faceVisibilityAngle:8,gridLines:!0,axisLabels:null,axisTitlePixelOffset:35,tickLabelPixelOffset:12,generateTicks:Ap,...n,axisTextStyle:{fontColor:"white",fontStyle:"normal",fontSize:18,fontFamily:"serif",...n?.axisTextStyle},tickTextStyle:{fontColor:"white",fontStyle:"normal",fontSize:14,fontFamily:"serif",...n?.tickTextStyle}}}function Pp(t,e,n={}){gn.extend(t,e,_w(t,e,n)),e.lastFacesToDraw=[!1,!1,!1,!1,!1,!1],e.axisLabels=["X-Axis","Y-Axis","Z-Axis"],e.tickCounts=[],e.textValues=[],e.lastTickBounds=[],e.tmCanvas=document.createElement("canvas"),e.tmContext=e.tmCanvas.getContext("2d"),e._tmAtlas=new Map,e.tmTexture=vn.newInstance({resizable:!0}),e.tmTexture.setInterpolate(!1),t.getProperty().setDiffuse(0),t.getProperty().setAmbient(1),e.gridMapper=hn.newInstance(),e.polyData=We.newInstance(),e.gridMapper.setInputData(e.polyData),e.gridActor=gn.newInstance(),e.gridActor.setMapper(e.gridMapper),e.gridActor.setProperty(t.getProperty()),e.gridActor.setParentProp(t),e.textPolyData=We.newInstance(),O.setGet(t,e,["axisTitlePixelOffset","boundsScaleFactor","faceVisibilityAngle","gridLines","tickLabelPixelOffset","generateTicks"]),O.setGetArray(t,e,["dataBounds"],6),O.setGetArray(t,e,["axisLabels"],3),O.get(t,e,["axisTextStyle","tickTextStyle","camera","tmTexture","textValues","textPolyData","tickCounts","gridActor"]),Lw(t,e)}var Fw=O.newInstance(Pp,"vtkCubeAxesActor"),rc={newInstance:Fw,extend:Pp,newCubeAxesActorHelper:Vw,defaultGenerateTicks:Ap};function Nw(t,e){e.classHierarchy.push("vtkOpenGLCubeAxesActor"),t.buildPass=n=>{n&&(e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e._openGLRenderWindow=e._openGLRenderer.getParent(),e.CubeAxesActorHelper.getRenderable()||e.CubeAxesActorHelper.setRenderable(e.renderable),t.prepareNodes(),t.addMissingNode(e.CubeAxesActorHelper.getTmActor()),t.addMissingNode(e.renderable.getGridActor()),t.removeUnusedNodes())},t.opaquePass=(n,r)=>{if(n){let a=e._openGLRenderer?e._openGLRenderer.getRenderable().getActiveCamera():null,i=e._openGLRenderer.getTiledSizeAndOrigin();e.CubeAxesActorHelper.updateAPISpecificData([i.usize,i.vsize],a,e._openGLRenderWindow.getRenderable())}}}var Bw={};function Gw(t,e,n={}){Object.assign(e,Bw,n),ue.extend(t,e,n),e.CubeAxesActorHelper=rc.newCubeAxesActorHelper(),Nw(t,e)}var Uw=J(Gw,"vtkOpenGLCubeAxesActor");le("vtkCubeAxesActor",Uw);var{vtkErrorMacro:kw}=O;function bw(t,e){e.classHierarchy.push("vtkShader"),t.compile=()=>{let n=e.context.VERTEX_SHADER;if(!e.source||!e.source.length||e.shaderType==="Unknown")return!1;if(e.handle!==0&&(e.context.deleteShader(e.handle),e.handle=0),e.shaderType==="Fragment"?n=e.context.FRAGMENT_SHADER:n=e.context.VERTEX_SHADER,e.handle=e.context.createShader(n),e.context.shaderSource(e.handle,e.source),e.context.compileShader(e.handle),!e.context.getShaderParameter(e.handle,e.context.COMPILE_STATUS)){let r=e.context.getShaderInfoLog(e.handle);return kw(`Error compiling shader '${e.source}': ${r}`),e.context.deleteShader(e.handle),e.handle=0,!1}return!0},t.cleanup=()=>{e.shaderType==="Unknown"||e.handle===0||(e.context.deleteShader(e.handle),e.handle=0,e.dirty=!0)}}var zw={shaderType:"Unknown",source:"",error:"",handle:0,dirty:!1,context:null};function Hp(t,e,n={}){Object.assign(e,zw,n),O.obj(t,e),O.setGet(t,e,["shaderType","source","error","handle","context"]),bw(t,e)}var Ww=O.newInstance(Hp,"vtkShader"),Hi={newInstance:Ww,extend:Hp};var{vtkErrorMacro:Gt}=O;function Aw(t,e,n,r){let a=typeof n=="string"?n:n.join(`
`),i=r===!1?e:new RegExp(e,"g"),s=t.replace(i,a);return{replace:s!==a,result:s}}function Pw(t,e){e.classHierarchy.push("vtkShaderProgram"),t.compileShader=()=>e.vertexShader.compile()?e.fragmentShader.compile()?!t.attachShader(e.vertexShader)||!t.attachShader(e.fragmentShader)?(Gt(e.error),0):t.link()?(t.setCompiled(!0),1):(Gt(`Links failed: ${e.error}`),0):(Gt(e.fragmentShader.getSource().split(`
`).map((n,r)=>`${r}: ${n}`).join(`
`)),Gt(e.fragmentShader.getError()),0):(Gt(e.vertexShader.getSource().split(`
`).map((n,r)=>`${r}: ${n}`).join(`
`)),Gt(e.vertexShader.getError()),0),t.cleanup=()=>{e.shaderType==="Unknown"||e.handle===0||(t.release(),e.vertexShaderHandle!==0&&(e.context.detachShader(e.handle,e.vertexShaderHandle),e.vertexShaderHandle=0),e.fragmentShaderHandle!==0&&(e.context.detachShader(e.handle,e.fragmentShaderHandle),e.fragmentShaderHandle=0),e.context.deleteProgram(e.handle),e.handle=0,t.setCompiled(!1))},t.bind=()=>!e.linked&&!t.link()?!1:(e.context.useProgram(e.handle),t.setBound(!0),!0),t.isBound=()=>!!e.bound,t.release=()=>{e.context.useProgram(null),t.setBound(!1)},t.setContext=n=>{e.vertexShader.setContext(n),e.fragmentShader.setContext(n),e.geometryShader.setContext(n)},t.link=()=>e.linked?!0:e.handle===0?(e.error="Program has not been initialized, and/or does not have shaders.",!1):(e.uniformLocs={},e.context.linkProgram(e.handle),e.context.getProgramParameter(e.handle,e.context.LINK_STATUS)?(t.setLinked(!0),e.attributeLocs={},!0):(Gt(`Error linking shader ${e.context.getProgramInfoLog(e.handle)}`),e.handle=0,!1)),t.setUniformMatrix=(n,r)=>{let a=t.findUniform(n);if(a===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;let i=new Float32Array(r);return e.context.uniformMatrix4fv(a,!1,i),!0},t.setUniformMatrix3x3=(n,r)=>{let a=t.findUniform(n);if(a===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;let i=new Float32Array(r);return e.context.uniformMatrix3fv(a,!1,i),!0},t.setUniformf=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform1f(a,r),!0)},t.setUniformfv=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform1fv(a,r),!0)},t.setUniformi=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform1i(a,r),!0)},t.setUniformiv=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform1iv(a,r),!0)},t.setUniform2f=(n,r,a)=>{let i=t.findUniform(n);if(i===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;if(a===void 0)throw new RangeError("Invalid number of values for array");return e.context.uniform2f(i,r,a),!0},t.setUniform2fv=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform2fv(a,r),!0)},t.setUniform2i=(n,r,a)=>{let i=t.findUniform(n);if(i===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;if(a===void 0)throw new RangeError("Invalid number of values for array");return e.context.uniform2i(i,r,a),!0},t.setUniform2iv=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform2iv(a,r),!0)},t.setUniform3f=(n,r,a,i)=>{let s=t.findUniform(n);if(s===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;if(i===void 0)throw new RangeError("Invalid number of values for array");return e.context.uniform3f(s,r,a,i),!0},t.setUniform3fArray=(n,r)=>{let a=t.findUniform(n);if(a===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;if(!Array.isArray(r)||r.length!==3)throw new RangeError("Invalid number of values for array");return e.context.uniform3f(a,r[0],r[1],r[2]),!0},t.setUniform3fv=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform3fv(a,r),!0)},t.setUniform3i=(n,...r)=>{let a=t.findUniform(n);if(a===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;let i=r;if(i.length===1&&Array.isArray(i[0])&&(i=i[0]),i.length!==3)throw new RangeError("Invalid number of values for array");return e.context.uniform3i(a,i[0],i[1],i[2]),!0},t.setUniform3iv=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform3iv(a,r),!0)},t.setUniform4f=(n,...r)=>{let a=t.findUniform(n);if(a===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;let i=r;if(i.length===1&&Array.isArray(i[0])&&(i=i[0]),i.length!==4)throw new RangeError("Invalid number of values for array");return e.context.uniform4f(a,i[0],i[1],i[2],i[3]),!0},t.setUniform4fv=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform4fv(a,r),!0)},t.setUniform4i=(n,...r)=>{let a=t.findUniform(n);if(a===-1)return e.error=`Could not set uniform ${n} . No such uniform.`,!1;let i=r;if(i.length===1&&Array.isArray(i[0])&&(i=i[0]),i.length!==4)throw new RangeError("Invalid number of values for array");return e.context.uniform4i(a,i[0],i[1],i[2],i[3]),!0},t.setUniform4iv=(n,r)=>{let a=t.findUniform(n);return a===-1?(e.error=`Could not set uniform ${n} . No such uniform.`,!1):(e.context.uniform4iv(a,r),!0)},t.findUniform=n=>{if(!n||!e.linked)return-1;let r=e.uniformLocs[n];return r!==void 0?r:(r=e.context.getUniformLocation(e.handle,n),r===null?(e.error=`Uniform ${n} not found in current shader program.`,e.uniformLocs[n]=-1,-1):(e.uniformLocs[n]=r,r))},t.isUniformUsed=n=>{if(!n)return!1;let r=e.uniformLocs[n];return r!==void 0?r!==null:e.linked?(r=e.context.getUniformLocation(e.handle,n),e.uniformLocs[n]=r,r!==null):(Gt("attempt to find uniform when the shader program is not linked"),!1)},t.isAttributeUsed=n=>{if(!n)return!1;if(n in e.attributeLocs)return!0;if(!e.linked)return Gt("attempt to find uniform when the shader program is not linked"),!1;let r=e.context.getAttribLocation(e.handle,n);return r===-1?!1:(e.attributeLocs[n]=r,!0)},t.attachShader=n=>{if(n.getHandle()===0)return e.error="Shader object was not initialized, cannot attach it.",!1;if(n.getShaderType()==="Unknown")return e.error="Shader object is of type Unknown and cannot be used.",!1;if(e.handle===0){let r=e.context.createProgram();if(r===0)return e.error="Could not create shader program.",!1;e.handle=r,e.linked=!1}return n.getShaderType()==="Vertex"&&(e.vertexShaderHandle!==0&&e.context.detachShader(e.handle,e.vertexShaderHandle),e.vertexShaderHandle=n.getHandle()),n.getShaderType()==="Fragment"&&(e.fragmentShaderHandle!==0&&e.context.detachShader(e.handle,e.fragmentShaderHandle),e.fragmentShaderHandle=n.getHandle()),e.context.attachShader(e.handle,n.getHandle()),t.setLinked(!1),!0},t.detachShader=n=>{if(n.getHandle()===0)return e.error="shader object was not initialized, cannot attach it.",!1;if(n.getShaderType()==="Unknown")return e.error="Shader object is of type Unknown and cannot be used.",!1;switch(e.handle===0&&(e.error="This shader program has not been initialized yet."),n.getShaderType()){case"Vertex":return e.vertexShaderHandle!==n.getHandle()?(e.error="The supplied shader was not attached to this program.",!1):(e.context.detachShader(e.handle,n.getHandle()),e.vertexShaderHandle=0,e.linked=!1,!0);case"Fragment":return e.fragmentShaderHandle!==n.getHandle()?(e.error="The supplied shader was not attached to this program.",!1):(e.context.detachShader(e.handle,n.getHandle()),e.fragmentShaderHandle=0,e.linked=!1,!0);default:return!1}},t.setContext=n=>{e.context=n,e.vertexShader.setContext(n),e.fragmentShader.setContext(n),e.geometryShader.setContext(n)},t.setLastCameraMTime=n=>{e.lastCameraMTime=n}}var Hw={vertexShaderHandle:0,fragmentShaderHandle:0,geometryShaderHandle:0,vertexShader:null,fragmentShader:null,geometryShader:null,linked:!1,bound:!1,compiled:!1,error:"",handle:0,numberOfOutputs:0,attributesLocs:null,uniformLocs:null,md5Hash:0,context:null,lastCameraMTime:null};function Ip(t,e,n={}){Object.assign(e,Hw,n),e.attributesLocs={},e.uniformLocs={},e.vertexShader=Hi.newInstance(),e.vertexShader.setShaderType("Vertex"),e.fragmentShader=Hi.newInstance(),e.fragmentShader.setShaderType("Fragment"),e.geometryShader=Hi.newInstance(),e.geometryShader.setShaderType("Geometry"),O.obj(t,e),O.get(t,e,["lastCameraMTime"]),O.setGet(t,e,["error","handle","compiled","bound","md5Hash","vertexShader","fragmentShader","geometryShader","linked"]),Pw(t,e)}var k={newInstance:O.newInstance(Ip,"vtkShaderProgram"),extend:Ip,substitute:Aw};var Ut={ARRAY_BUFFER:0,ELEMENT_ARRAY_BUFFER:1,TEXTURE_BUFFER:2},ac={ObjectType:Ut};var{ObjectType:Ii}=ac,Iw={};function jw(t,e){e.classHierarchy.push("vtkOpenGLBufferObject");function n(o){switch(o){case Ii.ELEMENT_ARRAY_BUFFER:return e.context.ELEMENT_ARRAY_BUFFER;case Ii.TEXTURE_BUFFER:if("TEXTURE_BUFFER"in e.context)return e.context.TEXTURE_BUFFER;case Ii.ARRAY_BUFFER:default:return e.context.ARRAY_BUFFER}}let r=null,a=null,i=!0,s="";t.getType=()=>r,t.setType=o=>{r=o},t.getHandle=()=>a,t.isReady=()=>i===!1,t.generateBuffer=o=>{let c=n(o);return a===null&&(a=e.context.createBuffer(),r=o),n(r)===c},t.upload=(o,c)=>t.generateBuffer(c)?(e.context.bindBuffer(n(r),a),e.context.bufferData(n(r),o,e.context.STATIC_DRAW),e.allocatedGPUMemoryInBytes=o.length*o.BYTES_PER_ELEMENT,i=!1,!0):(s="Trying to upload array buffer to incompatible buffer.",!1),t.bind=()=>a?(e.context.bindBuffer(n(r),a),!0):!1,t.release=()=>a?(e.context.bindBuffer(n(r),null),!0):!1,t.releaseGraphicsResources=()=>{a!==null&&(e.context.bindBuffer(n(r),null),e.context.deleteBuffer(a),a=null,e.allocatedGPUMemoryInBytes=0)},t.setOpenGLRenderWindow=o=>{e._openGLRenderWindow!==o&&(t.releaseGraphicsResources(),e._openGLRenderWindow=o,e.context=null,o&&(e.context=e._openGLRenderWindow.getContext()))},t.getError=()=>s}var $w={objectType:Ii.ARRAY_BUFFER,context:null,allocatedGPUMemoryInBytes:0};function jp(t,e,n={}){Object.assign(e,$w,n),O.obj(t,e),O.get(t,e,["_openGLRenderWindow","allocatedGPUMemoryInBytes"]),O.moveToProtected(t,e,["openGLRenderWindow"]),jw(t,e)}var Kw=O.newInstance(jp),ji={newInstance:Kw,extend:jp,...Iw,...ac};function ic(t){let e=0,n=0;for(let a=0;a<3;++a){let i=t.getRange(a),s=i[1]-i[0];e+=s*s;let o=.5*(i[1]+i[0]);n+=o*o}let r=e>0&&(Math.abs(n)/e>1e6||Math.abs(Math.log10(e))>3||e===0&&n>1e6);if(r){let a=new Float64Array(3),i=new Float64Array(3);for(let s=0;s<3;++s){let o=t.getRange(s),c=o[1]-o[0];a[s]=.5*(o[1]+o[0]),i[s]=c>0?1/c:1}return{useShiftAndScale:r,coordShift:a,coordScale:i}}return{useShiftAndScale:r,coordShift:new Float32Array([0,0,0]),coordScale:new Float32Array([1,1,1])}}function $p(t,e){let n=new Float64Array(3);W.inverse(n,e);let r=new Float64Array(16);return F.fromRotationTranslationScale(r,_e.create(),t,n),r}var{vtkErrorMacro:Kp}=O;function Xw(t,e){return t===null||e===null?!1:!(W.exactEquals(t,[0,0,0])&&W.exactEquals(e,[1,1,1]))}function Yw(t){return!t.forceFlatten&&!t.haveCellScalars&&!t.haveCellNormals&&!t.useTCoordsPerCell}var sc={anythingToPoints(t,e,n,r,a){for(let i=0;i<t;++i)a(e[n+i],r)},linesToWireframe(t,e,n,r,a){for(let i=0;i<t-1;++i)a(e[n+i],r),a(e[n+i+1],r)},polysToWireframe(t,e,n,r,a){if(t>2)for(let i=0;i<t;++i)a(e[n+i],r),a(e[n+(i+1)%t],r)},stripsToWireframe(t,e,n,r,a){if(t>2){for(let i=0;i<t-1;++i)a(e[n+i],r),a(e[n+i+1],r);for(let i=0;i<t-2;i++)a(e[n+i],r),a(e[n+i+2],r)}},polysToSurface(t,e,n,r,a){for(let i=0;i<t-2;i++)a(e[n],r),a(e[n+i+1],r),a(e[n+i+2],r)},stripsToSurface(t,e,n,r,a){for(let i=0;i<t-2;i++)a(e[n+i],r),a(e[n+i+1+i%2],r),a(e[n+i+1+(i+1)%2],r)}},oc={anythingToPoints(t){return t},linesToWireframe(t){return t>1?(t-1)*2:0},polysToWireframe(t){return t>2?t*2:0},stripsToWireframe(t){return t>2?t*4-6:0},polysToSurface(t){return t>2?(t-2)*3:0},stripsToSurface(t){return t>2?(t-2)*3:0}};function Xp(t,e){return e===Ke.POINTS||t==="verts"?{build:sc.anythingToPoints,count:oc.anythingToPoints}:e===Ke.WIREFRAME||t==="lines"?{build:sc[`${t}ToWireframe`],count:oc[`${t}ToWireframe`]}:{build:sc[`${t}ToSurface`],count:oc[`${t}ToSurface`]}}function Yp(t,e){let n=0;for(let r=0;r<t.length;r+=t[r]+1)n+=e(t[r]);return n}function qp(t,e,n,r){let a=e;for(let i=0;i<t.length;i+=t[i]+1)n(t[i],t,i+1,a,r),a++;return a}function qw(t,e,n,r){let a=t.getData(),{build:i,count:s}=Xp(e,n),o=Yp(a,s),c=r.points.getNumberOfPoints()<=65535?new Uint16Array(o):new Uint32Array(o),f=0;return{indices:c,cellCount:qp(a,0,i,u=>{c[f++]=u})}}function Zw(t,e){e.classHierarchy.push("vtkOpenGLCellArrayBufferObject"),t.setType(Ut.ARRAY_BUFFER),t.createVBO=(a,i,s,o,c=null)=>{if(!a.getData()||!a.getData().length)return e.elementCount=0,e.indexed=!1,0;e.blockSize=3,e.vertexOffset=0,e.normalOffset=0,e.tCoordOffset=0,e.tCoordComponents=0,e.colorComponents=0,e.colorOffset=0,e.customData=[];let f=o.points.getData(),u=null,g=null,l=null,h=o.colors?o.colors.getNumberOfComponents():0,y=o.tcoords?o.tcoords.getNumberOfComponents():0;o.normals&&(e.normalOffset=4*e.blockSize,e.blockSize+=3,u=o.normals.getData()),o.customAttributes&&o.customAttributes.forEach(b=>{b&&(e.customData.push({data:b.getData(),offset:4*e.blockSize,components:b.getNumberOfComponents(),name:b.getName()}),e.blockSize+=b.getNumberOfComponents())}),o.tcoords&&(e.tCoordOffset=4*e.blockSize,e.tCoordComponents=y,e.blockSize+=y,g=o.tcoords.getData()),o.colors?(e.colorComponents=o.colors.getNumberOfComponents(),e.colorOffset=0,l=o.colors.getData(),e.colorBO||(e.colorBO=ji.newInstance()),e.colorBO.setOpenGLRenderWindow(e._openGLRenderWindow)):e.colorBO=null,e.stride=4*e.blockSize;let p=0,v=0,x=0,S=0,T=0;if(Yw(o)){let{indices:b,cellCount:G}=qw(a,i,s,o);e.indexBO||(e.indexBO=ji.newInstance()),e.indexBO.setOpenGLRenderWindow(e._openGLRenderWindow),e.indexBO.upload(b,Ut.ELEMENT_ARRAY_BUFFER),b instanceof Uint16Array?e.indexElementType=e.context.UNSIGNED_SHORT:e.indexElementType=e.context.UNSIGNED_INT;let U=o.points.getNumberOfPoints(),z=new Float32Array(U*e.blockSize),A=0,{useShiftAndScale:Q,coordShift:X,coordScale:te}=ic(o.points);Q?t.setCoordShiftAndScale(X,te):e.coordShiftAndScaleEnabled===!0&&t.setCoordShiftAndScale(null,null);for(let I=0;I<U;I++)if(p=I*3,e.coordShiftAndScaleEnabled?(z[A++]=(f[p++]-e.coordShift[0])*e.coordScale[0],z[A++]=(f[p++]-e.coordShift[1])*e.coordScale[1],z[A++]=(f[p++]-e.coordShift[2])*e.coordScale[2]):(z[A++]=f[p++],z[A++]=f[p++],z[A++]=f[p++]),u!==null&&(v=I*3,z[A++]=u[v++],z[A++]=u[v++],z[A++]=u[v++]),e.customData.forEach(oe=>{T=I*oe.components;for(let ae=0;ae<oe.components;++ae)z[A++]=oe.data[T++]}),g!==null){x=I*y;for(let oe=0;oe<y;++oe)z[A++]=g[x++]}if(t.upload(z,Ut.ARRAY_BUFFER),e.colorBO){let I=new Uint8Array(U*4),oe=0;for(let ae=0;ae<U;ae++)S=ae*h,I[oe++]=l[S++],I[oe++]=l[S++],I[oe++]=l[S++],h===4?I[oe++]=l[S++]:I[oe++]=255;e.colorBOStride=4,e.colorBO.upload(I,Ut.ARRAY_BUFFER)}return e.elementCount=b.length,e.indexed=!0,G}e.indexBO&&e.indexBO.releaseGraphicsResources(),e.indexed=!1,e.indexElementType=null;let d,{build:C,count:w}=Xp(i,s),D=a.getData(),m=Yp(D,w),M=null,R=new Float32Array(m*e.blockSize);l&&(M=new Uint8Array(m*4));let E=0,V=0,{useShiftAndScale:N,coordShift:_,coordScale:L}=ic(o.points);if(N?t.setCoordShiftAndScale(_,L):e.coordShiftAndScaleEnabled===!0&&t.setCoordShiftAndScale(null,null),c)if(!c.points&&!c.cells)c.points=new Int32Array(m),c.cells=new Int32Array(m);else{let b=new Int32Array(m+c.points.length);b.set(c.points),c.points=b;let G=new Int32Array(m+c.cells.length);G.set(c.cells),c.cells=G}let B=o.vertexOffset;return d=function(G,U){if(c&&(c.points[B]=G,c.cells[B]=U),++B,p=G*3,e.coordShiftAndScaleEnabled?(R[E++]=(f[p++]-e.coordShift[0])*e.coordScale[0],R[E++]=(f[p++]-e.coordShift[1])*e.coordScale[1],R[E++]=(f[p++]-e.coordShift[2])*e.coordScale[2]):(R[E++]=f[p++],R[E++]=f[p++],R[E++]=f[p++]),u!==null&&(o.haveCellNormals?v=U*3:v=G*3,R[E++]=u[v++],R[E++]=u[v++],R[E++]=u[v++]),e.customData.forEach(z=>{T=G*z.components;for(let A=0;A<z.components;++A)R[E++]=z.data[T++]}),g!==null){o.useTCoordsPerCell?x=U*y:x=G*y;for(let z=0;z<y;++z)R[E++]=g[x++]}l!==null&&(o.haveCellScalars?S=U*h:S=G*h,M[V++]=l[S++],M[V++]=l[S++],M[V++]=l[S++],M[V++]=h===4?l[S++]:255)},qp(D,o.cellOffset,C,d),e.elementCount=m,t.upload(R,Ut.ARRAY_BUFFER),e.colorBO&&(e.colorBOStride=4,e.colorBO.upload(M,Ut.ARRAY_BUFFER)),a.getNumberOfCells()},t.setCoordShiftAndScale=(a,i)=>{if(a!==null&&(a.constructor!==Float64Array||a.length!==3)){Kp("Wrong type for coordShift, expected vec3 or null");return}if(i!==null&&(i.constructor!==Float64Array||i.length!==3)){Kp("Wrong type for coordScale, expected vec3 or null");return}(e.coordShift===null||a===null||!W.equals(a,e.coordShift))&&(e.coordShift=a),(e.coordScale===null||i===null||!W.equals(i,e.coordScale))&&(e.coordScale=i),e.coordShiftAndScaleEnabled=Xw(e.coordShift,e.coordScale),e.coordShiftAndScaleEnabled?e.inverseShiftAndScaleMatrix=$p(e.coordShift,e.coordScale):e.inverseShiftAndScaleMatrix=null};let n=t.releaseGraphicsResources;t.releaseGraphicsResources=()=>{n(),e.indexBO&&e.indexBO.releaseGraphicsResources(),e.colorBO&&e.colorBO.releaseGraphicsResources(),e.indexed=!1};let r=t.getAllocatedGPUMemoryInBytes;t.getAllocatedGPUMemoryInBytes=()=>r()+(e.indexBO?e.indexBO.getAllocatedGPUMemoryInBytes():0)+(e.colorBO?e.colorBO.getAllocatedGPUMemoryInBytes():0)}var Qw={elementCount:0,indexed:!1,indexBO:null,indexElementType:null,stride:0,colorBOStride:0,vertexOffset:0,normalOffset:0,tCoordOffset:0,tCoordComponents:0,colorOffset:0,colorComponents:0,tcoordBO:null,customData:[],coordShift:null,coordScale:null,coordShiftAndScaleEnabled:!1,inverseShiftAndScaleMatrix:null};function Zp(t,e,n={}){Object.assign(e,Qw,n),ji.extend(t,e,n),O.setGet(t,e,["colorBO","elementCount","stride","colorBOStride","vertexOffset","normalOffset","tCoordOffset","tCoordComponents","colorOffset","colorComponents","customData","indexed","indexBO","indexElementType"]),O.get(t,e,["coordShift","coordScale","coordShiftAndScaleEnabled","inverseShiftAndScaleMatrix"]),Zw(t,e)}var Jw=O.newInstance(Zp),Qp={newInstance:Jw,extend:Zp};function eO(t,e){e.classHierarchy.push("vtkOpenGLVertexArrayObject"),t.initialize=()=>{e.handleVAO=e.context.createVertexArray()},t.isReady=()=>e.handleVAO!==0,t.bind=()=>{t.isReady()||t.initialize(),e.context.bindVertexArray(e.handleVAO)},t.release=()=>{e.context&&e.context.bindVertexArray(null)},t.shaderProgramChanged=()=>{t.release(),e.handleVAO&&e.context&&e.context.deleteVertexArray(e.handleVAO),e.handleVAO=0,e.handleProgram=0},t.releaseGraphicsResources=()=>{t.shaderProgramChanged(),e.handleVAO&&e.context&&e.context.deleteVertexArray(e.handleVAO),e.handleVAO=0,e.handleProgram=0},t.addAttributeArray=(n,r,a,i,s,o,c,f)=>t.addAttributeArrayWithDivisor(n,r,a,i,s,o,c,f,0,!1),t.addAttributeArrayWithDivisor=(n,r,a,i,s,o,c,f,u,g)=>{if(!n||!n.isBound()||r.getHandle()===0||r.getType()!==Ut.ARRAY_BUFFER||(e.handleProgram===0&&(e.handleProgram=n.getHandle()),t.isReady()||t.initialize(),!t.isReady()||e.handleProgram!==n.getHandle()))return!1;let l=e.context,h=l.getAttribLocation(e.handleProgram,a);return h===-1?!1:(r.bind(),l.enableVertexAttribArray(h),l.vertexAttribPointer(h,c,o,f,s,i),u>0&&l.vertexAttribDivisor(h,1),!0)},t.addAttributeMatrixWithDivisor=(n,r,a,i,s,o,c,f,u)=>{let g=t.addAttributeArrayWithDivisor(n,r,a,i,s,o,c,f,u,!0);if(!g)return g;let l=e.context,h=l.getAttribLocation(e.handleProgram,a);for(let y=1;y<c;y++)l.enableVertexAttribArray(h+y),l.vertexAttribPointer(h+y,c,o,f,s,i+s*y/c),u>0&&l.vertexAttribDivisor(h+y,1);return!0},t.removeAttributeArray=n=>!(!t.isReady()||e.handleProgram===0),t.setOpenGLRenderWindow=n=>{e._openGLRenderWindow!==n&&(t.releaseGraphicsResources(),e._openGLRenderWindow=n,e.context=null,n&&(e.context=e._openGLRenderWindow.getContext()))}}var tO={handleVAO:0,handleProgram:0,context:null};function Jp(t,e,n={}){Object.assign(e,tO,n),O.obj(t,e),eO(t,e)}var nO=O.newInstance(Jp,"vtkOpenGLVertexArrayObject"),Er={newInstance:nO,extend:Jp};var Tn={Start:0,Points:0,Lines:1,Tris:2,TriStrips:3,TrisEdges:4,TriStripsEdges:5,End:6};function rO(t,e){e.classHierarchy.push("vtkOpenGLHelper"),t.setOpenGLRenderWindow=n=>{e.context=n.getContext(),e.program.setContext(e.context),e.VAO.setOpenGLRenderWindow(n),e.CABO.setOpenGLRenderWindow(n)},t.releaseGraphicsResources=n=>{e.VAO.releaseGraphicsResources(),e.CABO.releaseGraphicsResources(),e.CABO.setElementCount(0)},t.drawArrays=(n,r,a,i)=>{if(e.CABO.getElementCount()){let s=t.getOpenGLMode(a),o=t.haveWideLines(n,r),c=e.context,f;e.pointPicking&&(f=c.getParameter(c.DEPTH_WRITEMASK),c.depthMask(!1)),s===c.LINES&&o?(t.updateShaders(n,r,i),e.CABO.getIndexed()?(e.CABO.getIndexBO().bind(),c.drawElementsInstanced(s,e.CABO.getElementCount(),e.CABO.getIndexElementType(),0,2*Math.ceil(r.getProperty().getLineWidth()))):c.drawArraysInstanced(s,0,e.CABO.getElementCount(),2*Math.ceil(r.getProperty().getLineWidth()))):(c.lineWidth(r.getProperty().getLineWidth()),t.updateShaders(n,r,i),e.CABO.getIndexed()?(e.CABO.getIndexBO().bind(),c.drawElements(s,e.CABO.getElementCount(),e.CABO.getIndexElementType(),0)):c.drawArrays(s,0,e.CABO.getElementCount()),c.lineWidth(1));let u=3;return s===c.POINTS?u=1:s===c.LINES&&(u=2),e.pointPicking&&c.depthMask(f),e.CABO.getElementCount()/u}return 0},t.getOpenGLMode=n=>{if(e.pointPicking)return e.context.POINTS;let r=e.primitiveType;return n===Ke.POINTS||r===Tn.Points?e.context.POINTS:n===Ke.WIREFRAME||r===Tn.Lines||r===Tn.TrisEdges||r===Tn.TriStripsEdges?e.context.LINES:e.context.TRIANGLES},t.haveWideLines=(n,r)=>r.getProperty().getLineWidth()>1?!(e.CABO.getOpenGLRenderWindow()&&e.CABO.getOpenGLRenderWindow().getHardwareMaximumLineWidth()>=r.getProperty().getLineWidth()):!1,t.getNeedToRebuildShaders=(n,r,a)=>!!(a.getNeedToRebuildShaders(t,n,r)||t.getProgram()===0||t.getShaderSourceTime().getMTime()<a.getMTime()||t.getShaderSourceTime().getMTime()<r.getMTime()),t.updateShaders=(n,r,a)=>{if(t.getNeedToRebuildShaders(n,r,a)){let i={Vertex:null,Fragment:null,Geometry:null};a.buildShaders(i,n,r);let s=e.CABO.getOpenGLRenderWindow().getShaderCache().readyShaderProgramArray(i.Vertex,i.Fragment,i.Geometry);s!==t.getProgram()&&(t.setProgram(s),t.getVAO().releaseGraphicsResources()),t.getShaderSourceTime().modified()}else e.CABO.getOpenGLRenderWindow().getShaderCache().readyShaderProgram(t.getProgram());t.getVAO().bind(),a.setMapperShaderParameters(t,n,r),a.setPropertyShaderParameters(t,n,r),a.setCameraShaderParameters(t,n,r),a.setLightingShaderParameters(t,n,r),a.invokeShaderCallbacks(t,n,r)},t.setMapperShaderParameters=(n,r,a)=>{if(t.haveWideLines(n,r)){t.getProgram().setUniform2f("viewportSize",a.usize,a.vsize);let i=parseFloat(r.getProperty().getLineWidth()),s=i/2;t.getProgram().setUniformf("lineWidthStepSize",i/Math.ceil(i)),t.getProgram().setUniformf("halfLineWidth",s)}e.primitiveType===Tn.Points||r.getProperty().getRepresentation()===Ke.POINTS?t.getProgram().setUniformf("pointSize",r.getProperty().getPointSize()):e.pointPicking&&t.getProgram().setUniformf("pointSize",t.getPointPickingPrimitiveSize())},t.replaceShaderPositionVC=(n,r,a)=>{let i=n.Vertex;i=k.substitute(i,"//VTK::PositionVC::Dec",["//VTK::PositionVC::Dec","uniform float pointSize;"]).result,i=k.substitute(i,"//VTK::PositionVC::Impl",["//VTK::PositionVC::Impl","  gl_PointSize = pointSize;"],!1).result,t.getOpenGLMode(a.getProperty().getRepresentation())===e.context.LINES&&t.haveWideLines(r,a)&&(i=k.substitute(i,"//VTK::PositionVC::Dec",["//VTK::PositionVC::Dec","uniform vec2 viewportSize;","uniform float lineWidthStepSize;","uniform float halfLineWidth;"]).result,i=k.substitute(i,"//VTK::PositionVC::Impl",["//VTK::PositionVC::Impl"," if (halfLineWidth > 0.0)","   {","   float offset = float(gl_InstanceID / 2) * lineWidthStepSize - halfLineWidth;","   vec4 tmpPos = gl_Position;","   vec3 tmpPos2 = tmpPos.xyz / tmpPos.w;","   tmpPos2.x = tmpPos2.x + 2.0 * mod(float(gl_InstanceID), 2.0) * offset / viewportSize[0];","   tmpPos2.y = tmpPos2.y + 2.0 * mod(float(gl_InstanceID + 1), 2.0) * offset / viewportSize[1];","   gl_Position = vec4(tmpPos2.xyz * tmpPos.w, tmpPos.w);","   }"]).result),n.Vertex=i},t.getPointPickingPrimitiveSize=()=>e.primitiveType===Tn.Points?2:e.primitiveType===Tn.Lines?4:6,t.getAllocatedGPUMemoryInBytes=()=>t.getCABO().getAllocatedGPUMemoryInBytes()}var aO={context:null,program:null,shaderSourceTime:null,VAO:null,attributeUpdateTime:null,CABO:null,primitiveType:0,pointPicking:!1};function eh(t,e,n={}){Object.assign(e,aO,n),O.obj(t,e),e.shaderSourceTime={},O.obj(e.shaderSourceTime),e.attributeUpdateTime={},O.obj(e.attributeUpdateTime),O.setGet(t,e,["program","shaderSourceTime","VAO","attributeUpdateTime","CABO","primitiveType","pointPicking"]),e.program=k.newInstance(),e.VAO=Er.newInstance(),e.CABO=Qp.newInstance(),rO(t,e)}var iO=O.newInstance(eh);function $i(t,e,n){e.primitives.forEach(r=>r.releaseGraphicsResources()),e.internalColorTexture?.releaseGraphicsResources(n??e._openGLRenderWindow),e.VBOBuildString=null,t.modified()}var Ye={newInstance:iO,extend:eh,primTypes:Tn};var Dr=`//VTK::System::Dec

/*=========================================================================

  Program:   Visualization Toolkit
  Module:    vtkPolyDataVS.glsl

  Copyright (c) Ken Martin, Will Schroeder, Bill Lorensen
  All rights reserved.
  See Copyright.txt or http://www.kitware.com/Copyright.htm for details.

     This software is distributed WITHOUT ANY WARRANTY; without even
     the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
     PURPOSE.  See the above copyright notice for more information.

=========================================================================*/

attribute vec4 vertexMC;

// frag position in VC
//VTK::PositionVC::Dec

// optional normal declaration
//VTK::Normal::Dec

// extra lighting parameters
//VTK::Light::Dec

// Texture coordinates
//VTK::TCoord::Dec

// material property values
//VTK::Color::Dec

// clipping plane vars
//VTK::Clip::Dec

// camera and actor matrix values
//VTK::Camera::Dec

// Apple Bug
//VTK::PrimID::Dec

// picking support
//VTK::Picking::Dec

void main()
{
  //VTK::Color::Impl

  //VTK::Normal::Impl

  //VTK::TCoord::Impl

  //VTK::Clip::Impl

  //VTK::PrimID::Impl

  //VTK::PositionVC::Impl

  //VTK::Light::Impl

  //VTK::Picking::Impl
}
`;var Vr=`//VTK::System::Dec

/*=========================================================================

  Program:   Visualization Toolkit
  Module:    vtkPolyDataFS.glsl

  Copyright (c) Ken Martin, Will Schroeder, Bill Lorensen
  All rights reserved.
  See Copyright.txt or http://www.kitware.com/Copyright.htm for details.

     This software is distributed WITHOUT ANY WARRANTY; without even
     the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
     PURPOSE.  See the above copyright notice for more information.

=========================================================================*/
// Template for the polydata mappers fragment shader

uniform int PrimitiveIDOffset;

// VC position of this fragment
//VTK::PositionVC::Dec

// optional color passed in from the vertex shader, vertexColor
//VTK::Color::Dec

// optional surface normal declaration
//VTK::Normal::Dec

// extra lighting parameters
//VTK::Light::Dec

// define vtkImageLabelOutlineOn
//VTK::ImageLabelOutlineOn

// Texture coordinates
//VTK::TCoord::Dec

// picking support
//VTK::Picking::Dec

// Depth Peeling Support
//VTK::DepthPeeling::Dec

// clipping plane vars
//VTK::Clip::Dec

// label outline 
//VTK::LabelOutline::Dec

// the output of this shader
//VTK::Output::Dec

// Apple Bug
//VTK::PrimID::Dec

// handle coincident offsets
//VTK::Coincident::Dec

//VTK::ZBuffer::Dec

//VTK::LabelOutlineHelperFunction

void main()
{
  // VC position of this fragment. This should not branch/return/discard.
  //VTK::PositionVC::Impl

  // Place any calls that require uniform flow (e.g. dFdx) here.
  //VTK::UniformFlow::Impl

  // Set gl_FragDepth here (gl_FragCoord.z by default)
  //VTK::Depth::Impl

  // Early depth peeling abort:
  //VTK::DepthPeeling::PreColor

  // Apple Bug
  //VTK::PrimID::Impl

  //VTK::Clip::Impl

  //VTK::Color::Impl

  // Generate the normal if we are not passed in one
  //VTK::Normal::Impl

  //VTK::TCoord::Impl

  //VTK::Light::Impl

  if (gl_FragData[0].a <= 0.0)
    {
    discard;
    }

  //VTK::DepthPeeling::Impl

  //VTK::Picking::Impl

  // handle coincident offsets
  //VTK::Coincident::Impl

  //VTK::ZBuffer::Impl

  //VTK::RenderPassFragmentShader::Impl
}
`;function sO(t,e,n={}){t.replaceShaderCoincidentOffset=(r,a,i)=>{let s=t.getCoincidentParameters(a,i);if(s&&(s.factor!==0||s.offset!==0)){let o=r.Fragment;o=k.substitute(o,"//VTK::Coincident::Dec",["uniform float cfactor;","uniform float coffset;"]).result,s.factor!==0?(o=k.substitute(o,"//VTK::UniformFlow::Impl",["float cscale = length(vec2(dFdx(gl_FragCoord.z),dFdy(gl_FragCoord.z)));","//VTK::UniformFlow::Impl"],!1).result,o=k.substitute(o,"//VTK::Depth::Impl","gl_FragDepth = gl_FragCoord.z + cfactor*cscale + 0.000016*coffset;").result):o=k.substitute(o,"//VTK::Depth::Impl","gl_FragDepth = gl_FragCoord.z + 0.000016*coffset;").result,r.Fragment=o}}}function oO(t,e,n={}){t.applyShaderReplacements=(r,a,i)=>{let s=null;if(a&&(s=a.ShaderReplacements),s)for(let o=0;o<s.length;o++){let c=s[o];if(i&&c.replaceFirst||!i&&!c.replaceFirst){let f=c.shaderType,u=r[f];r[f]=k.substitute(u,c.originalValue,c.replacementValue,c.replaceAll).result}}},t.buildShaders=(r,a,i)=>{t.getReplacedShaderTemplate(r,a,i),e.lastRenderPassShaderReplacement=e.currentRenderPass?e.currentRenderPass.getShaderReplacement():null,e.lastRenderPassShaderReplacement&&e.lastRenderPassShaderReplacement(r);let s=e.renderable.getViewSpecificProperties().OpenGL;t.applyShaderReplacements(r,s,!0),t.replaceShaderValues(r,a,i),t.applyShaderReplacements(r,s)},t.getReplacedShaderTemplate=(r,a,i)=>{let s=e.renderable.getViewSpecificProperties().OpenGL;t.getShaderTemplate(r,a,i);let o=r.Vertex;if(s){let u=s.VertexShaderCode;u!==void 0&&u!==""&&(o=u)}r.Vertex=o;let c=r.Fragment;if(s){let u=s.FragmentShaderCode;u!==void 0&&u!==""&&(c=u)}r.Fragment=c;let f=r.Geometry;if(s){let u=s.GeometryShaderCode;u!==void 0&&(f=u)}r.Geometry=f}}var nt={implementReplaceShaderCoincidentOffset:sO,implementBuildShadersWithReplacements:oO};var{FieldAssociations:Ki}=it,{primTypes:Ae}=Ye,{Representation:Qn,Shading:th}=_t,{ScalarMode:Xi}=hn,{Filter:nh,Wrap:rh}=de,{vtkErrorMacro:Jn}=Ce,cO={type:"StartEvent"},fO={type:"EndEvent"},{CoordinateSystem:uO}=gi;function lO(t){let e=t.getSelector();return e?e.getCurrentPass():Je.MIN_KNOWN_PASS-1}function gO(t,e){e.classHierarchy.push("vtkOpenGLPolyDataMapper"),t.buildPass=a=>{a&&(e.currentRenderPass=null,e.openGLActor=t.getFirstAncestorOfType("vtkOpenGLActor"),e._openGLRenderer=e.openGLActor.getFirstAncestorOfType("vtkOpenGLRenderer"),e._openGLRenderWindow=e._openGLRenderer.getLastAncestorOfType("vtkOpenGLRenderWindow"),e.openGLCamera=e._openGLRenderer.getViewNodeFor(e._openGLRenderer.getRenderable().getActiveCamera(),e.openGLCamera))},t.translucentPass=(a,i)=>{a&&(e.currentRenderPass=i,t.render())},t.zBufferPass=a=>{a&&(e.haveSeenDepthRequest=!0,e.renderDepth=!0,t.render(),e.renderDepth=!1)},t.opaqueZBufferPass=a=>t.zBufferPass(a),t.opaquePass=a=>{a&&t.render()},t.render=()=>{let a=e._openGLRenderWindow.getContext();if(e.context!==a){e.context=a;for(let o=Ae.Start;o<Ae.End;o++)e.primitives[o].setOpenGLRenderWindow(e._openGLRenderWindow)}let i=e.openGLActor.getRenderable(),s=e._openGLRenderer.getRenderable();t.renderPiece(s,i)},t.getShaderTemplate=(a,i,s)=>{a.Vertex=Dr,a.Fragment=Vr,a.Geometry=""},t.replaceShaderColor=(a,i,s)=>{let o=a.Vertex,c=a.Geometry,f=a.Fragment,u=e.lastBoundBO.getReferenceByName("lastLightComplexity"),g=["uniform float ambient;","uniform float diffuse;","uniform float specular;","uniform float opacityUniform; // the fragment opacity","uniform vec3 ambientColorUniform;","uniform vec3 diffuseColorUniform;"];u&&(g=g.concat(["uniform vec3 specularColorUniform;","uniform float specularPowerUniform;"]));let l=["vec3 ambientColor;","  vec3 diffuseColor;","  float opacity;"];u&&(l=l.concat(["  vec3 specularColor;","  float specularPower;"])),l=l.concat(["  ambientColor = ambientColorUniform;","  diffuseColor = diffuseColorUniform;","  opacity = opacityUniform;"]),u&&(l=l.concat(["  specularColor = specularColorUniform;","  specularPower = specularPowerUniform;"])),e.lastBoundBO.getCABO().getColorComponents()!==0&&!e.drawingEdges&&(g=g.concat(["varying vec4 vertexColorVSOutput;"]),o=k.substitute(o,"//VTK::Color::Dec",["attribute vec4 scalarColor;","varying vec4 vertexColorVSOutput;"]).result,o=k.substitute(o,"//VTK::Color::Impl",["vertexColorVSOutput =  scalarColor;"]).result,c=k.substitute(c,"//VTK::Color::Dec",["in vec4 vertexColorVSOutput[];","out vec4 vertexColorGSOutput;"]).result,c=k.substitute(c,"//VTK::Color::Impl",["vertexColorGSOutput = vertexColorVSOutput[i];"]).result),e.lastBoundBO.getCABO().getColorComponents()!==0&&!e.drawingEdges?f=k.substitute(f,"//VTK::Color::Impl",l.concat(["  diffuseColor = vertexColorVSOutput.rgb;","  ambientColor = vertexColorVSOutput.rgb;","  opacity = opacity*vertexColorVSOutput.a;"])).result:(e.renderable.getAreScalarsMappedFromCells()||e.renderable.getInterpolateScalarsBeforeMapping())&&e.renderable.getColorCoordinates()&&!e.drawingEdges?f=k.substitute(f,"//VTK::Color::Impl",l.concat(["  vec4 texColor = texture2D(texture1, tcoordVCVSOutput.st);","  diffuseColor = texColor.rgb;","  ambientColor = texColor.rgb;","  opacity = opacity*texColor.a;"])).result:(s.getBackfaceProperty()&&!e.drawingEdges&&(g=g.concat(["uniform float opacityUniformBF; // the fragment opacity","uniform float ambientIntensityBF; // the material ambient","uniform float diffuseIntensityBF; // the material diffuse","uniform vec3 ambientColorUniformBF; // ambient material color","uniform vec3 diffuseColorUniformBF; // diffuse material color"]),u?(g=g.concat(["uniform float specularIntensityBF; // the material specular intensity","uniform vec3 specularColorUniformBF; // intensity weighted color","uniform float specularPowerUniformBF;"]),l=l.concat(["if (gl_FrontFacing == false) {","  ambientColor = ambientIntensityBF * ambientColorUniformBF;","  diffuseColor = diffuseIntensityBF * diffuseColorUniformBF;","  specularColor = specularIntensityBF * specularColorUniformBF;","  specularPower = specularPowerUniformBF;","  opacity = opacityUniformBF; }"])):l=l.concat(["if (gl_FrontFacing == false) {","  ambientColor = ambientIntensityBF * ambientColorUniformBF;","  diffuseColor = diffuseIntensityBF * diffuseColorUniformBF;","  opacity = opacityUniformBF; }"])),e.haveCellScalars&&!e.drawingEdges&&(g=g.concat(["uniform samplerBuffer texture1;"])),f=k.substitute(f,"//VTK::Color::Impl",l).result),f=k.substitute(f,"//VTK::Color::Dec",g).result,a.Vertex=o,a.Geometry=c,a.Fragment=f},t.replaceShaderLight=(a,i,s)=>{let o=a.Fragment,c="",f=e.lastBoundBO.getReferenceByName("lastLightComplexity"),u=e.lastBoundBO.getReferenceByName("lastLightCount"),g=[];switch(f){case 0:o=k.substitute(o,"//VTK::Light::Impl",["  gl_FragData[0] = vec4(ambientColor * ambient + diffuseColor * diffuse, opacity);","  //VTK::Light::Impl"],!1).result;break;case 1:o=k.substitute(o,"//VTK::Light::Impl",["  float df = max(0.0, normalVCVSOutput.z);","  float sf = pow(df, specularPower);","  vec3 diffuseL = df * diffuseColor;","  vec3 specularL = sf * specularColor;","  gl_FragData[0] = vec4(ambientColor * ambient + diffuseL * diffuse + specularL * specular, opacity);","  //VTK::Light::Impl"],!1).result;break;case 2:for(let l=0;l<u;++l)g=g.concat([`uniform vec3 lightColor${l};`,`uniform vec3 lightDirectionVC${l}; // normalized`,`uniform vec3 lightHalfAngleVC${l}; // normalized`]);o=k.substitute(o,"//VTK::Light::Dec",g).result,g=["vec3 diffuseL = vec3(0,0,0);","  vec3 specularL = vec3(0,0,0);","  float df;"];for(let l=0;l<u;++l)g=g.concat([`  df = max(0.0, dot(normalVCVSOutput, -lightDirectionVC${l}));`,`  diffuseL += ((df${c}) * lightColor${l});`,`  if (dot(normalVCVSOutput, lightDirectionVC${l}) < 0.0)`,"    {",`    float sf = sign(df)*pow(max(1e-5,
                                              dot(reflect(lightDirectionVC${l},normalVCVSOutput),
                                                  normalize(-vertexVC.xyz))),
                                         specularPower);`,`    specularL += (sf${c} * lightColor${l});`,"    }"]);g=g.concat(["  diffuseL = diffuseL * diffuseColor;","  specularL = specularL * specularColor;","  gl_FragData[0] = vec4(ambientColor * ambient + diffuseL * diffuse + specularL * specular, opacity);","  //VTK::Light::Impl"]),o=k.substitute(o,"//VTK::Light::Impl",g,!1).result;break;case 3:for(let l=0;l<u;++l)g=g.concat([`uniform vec3 lightColor${l};`,`uniform vec3 lightDirectionVC${l}; // normalized`,`uniform vec3 lightHalfAngleVC${l}; // normalized`,`uniform vec3 lightPositionVC${l};`,`uniform vec3 lightAttenuation${l};`,`uniform float lightConeAngle${l};`,`uniform float lightExponent${l};`,`uniform int lightPositional${l};`]);o=k.substitute(o,"//VTK::Light::Dec",g).result,g=["vec3 diffuseL = vec3(0,0,0);","  vec3 specularL = vec3(0,0,0);","  vec3 vertLightDirectionVC;","  float attenuation;","  float df;"];for(let l=0;l<u;++l)g=g.concat(["  attenuation = 1.0;",`  if (lightPositional${l} == 0)`,"    {",`      vertLightDirectionVC = lightDirectionVC${l};`,"    }","  else","    {",`    vertLightDirectionVC = vertexVC.xyz - lightPositionVC${l};`,"    float distanceVC = length(vertLightDirectionVC);","    vertLightDirectionVC = normalize(vertLightDirectionVC);","    attenuation = 1.0 /",`      (lightAttenuation${l}.x`,`       + lightAttenuation${l}.y * distanceVC`,`       + lightAttenuation${l}.z * distanceVC * distanceVC);`,"    // per OpenGL standard cone angle is 90 or less for a spot light",`    if (lightConeAngle${l} <= 90.0)`,"      {",`      float coneDot = dot(vertLightDirectionVC, lightDirectionVC${l});`,"      // if inside the cone",`      if (coneDot >= cos(radians(lightConeAngle${l})))`,"        {",`        attenuation = attenuation * pow(coneDot, lightExponent${l});`,"        }","      else","        {","        attenuation = 0.0;","        }","      }","    }","    df = max(0.0, attenuation*dot(normalVCVSOutput, -vertLightDirectionVC));",`    diffuseL += ((df${c}) * lightColor${l});`,"    if (dot(normalVCVSOutput, vertLightDirectionVC) < 0.0)","      {",`      float sf = sign(df)*attenuation*pow(max(1e-5,
                                                           dot(reflect(lightDirectionVC${l},
                                                                       normalVCVSOutput),
                                                               normalize(-vertexVC.xyz))),
                                                       specularPower);`,`    specularL += ((sf${c}) * lightColor${l});`,"    }"]);g=g.concat(["  diffuseL = diffuseL * diffuseColor;","  specularL = specularL * specularColor;","  gl_FragData[0] = vec4(ambientColor * ambient + diffuseL * diffuse + specularL * specular, opacity);","  //VTK::Light::Impl"]),o=k.substitute(o,"//VTK::Light::Impl",g,!1).result;break;default:Jn("bad light complexity")}a.Fragment=o},t.replaceShaderNormal=(a,i,s)=>{if(e.lastBoundBO.getReferenceByName("lastLightComplexity")>0){let o=a.Vertex,c=a.Geometry,f=a.Fragment;e.lastBoundBO.getCABO().getNormalOffset()?(o=k.substitute(o,"//VTK::Normal::Dec",["attribute vec3 normalMC;","uniform mat3 normalMatrix;","varying vec3 normalVCVSOutput;"]).result,o=k.substitute(o,"//VTK::Normal::Impl",["normalVCVSOutput = normalMatrix * normalMC;"]).result,c=k.substitute(c,"//VTK::Normal::Dec",["in vec3 normalVCVSOutput[];","out vec3 normalVCGSOutput;"]).result,c=k.substitute(c,"//VTK::Normal::Impl",["normalVCGSOutput = normalVCVSOutput[i];"]).result,f=k.substitute(f,"//VTK::Normal::Dec",["varying vec3 normalVCVSOutput;"]).result,f=k.substitute(f,"//VTK::Normal::Impl",["vec3 normalVCVSOutput = normalize(normalVCVSOutput);","  if (gl_FrontFacing == false) { normalVCVSOutput = -normalVCVSOutput; }"]).result):e.haveCellNormals?(f=k.substitute(f,"//VTK::Normal::Dec",["uniform mat3 normalMatrix;","uniform samplerBuffer textureN;"]).result,f=k.substitute(f,"//VTK::Normal::Impl",["vec3 normalVCVSOutput = normalize(normalMatrix *","    texelFetchBuffer(textureN, gl_PrimitiveID + PrimitiveIDOffset).xyz);","  if (gl_FrontFacing == false) { normalVCVSOutput = -normalVCVSOutput; }"]).result):e.lastBoundBO.getOpenGLMode(s.getProperty().getRepresentation())===e.context.LINES?(f=k.substitute(f,"//VTK::UniformFlow::Impl",["  vec3 fdx = dFdx(vertexVC.xyz);","  vec3 fdy = dFdy(vertexVC.xyz);","  //VTK::UniformFlow::Impl"]).result,f=k.substitute(f,"//VTK::Normal::Impl",["vec3 normalVCVSOutput;","  if (abs(fdx.x) > 0.0)","    { fdx = normalize(fdx); normalVCVSOutput = normalize(cross(vec3(fdx.y, -fdx.x, 0.0), fdx)); }","  else { fdy = normalize(fdy); normalVCVSOutput = normalize(cross(vec3(fdy.y, -fdy.x, 0.0), fdy));}"]).result):(f=k.substitute(f,"//VTK::Normal::Dec",["uniform int cameraParallel;"]).result,f=k.substitute(f,"//VTK::UniformFlow::Impl",["  vec3 fdx = dFdx(vertexVC.xyz);","  vec3 fdy = dFdy(vertexVC.xyz);","  //VTK::UniformFlow::Impl"]).result,f=k.substitute(f,"//VTK::Normal::Impl",["  fdx = normalize(fdx);","  fdy = normalize(fdy);","  vec3 normalVCVSOutput = normalize(cross(fdx,fdy));","  if (cameraParallel == 1 && normalVCVSOutput.z < 0.0) { normalVCVSOutput = -1.0*normalVCVSOutput; }","  if (cameraParallel == 0 && dot(normalVCVSOutput,vertexVC.xyz) > 0.0) { normalVCVSOutput = -1.0*normalVCVSOutput; }"]).result),a.Vertex=o,a.Geometry=c,a.Fragment=f}},t.replaceShaderPositionVC=(a,i,s)=>{e.lastBoundBO.replaceShaderPositionVC(a,i,s);let o=a.Vertex,c=a.Geometry,f=a.Fragment;e.lastBoundBO.getReferenceByName("lastLightComplexity")>0?(o=k.substitute(o,"//VTK::PositionVC::Dec",["varying vec4 vertexVCVSOutput;"]).result,o=k.substitute(o,"//VTK::PositionVC::Impl",["vertexVCVSOutput = MCVCMatrix * vertexMC;","  gl_Position = MCPCMatrix * vertexMC;"]).result,o=k.substitute(o,"//VTK::Camera::Dec",["uniform mat4 MCPCMatrix;","uniform mat4 MCVCMatrix;"]).result,c=k.substitute(c,"//VTK::PositionVC::Dec",["in vec4 vertexVCVSOutput[];","out vec4 vertexVCGSOutput;"]).result,c=k.substitute(c,"//VTK::PositionVC::Impl",["vertexVCGSOutput = vertexVCVSOutput[i];"]).result,f=k.substitute(f,"//VTK::PositionVC::Dec",["varying vec4 vertexVCVSOutput;"]).result,f=k.substitute(f,"//VTK::PositionVC::Impl",["vec4 vertexVC = vertexVCVSOutput;"]).result):(o=k.substitute(o,"//VTK::Camera::Dec",["uniform mat4 MCPCMatrix;"]).result,o=k.substitute(o,"//VTK::PositionVC::Impl",["  gl_Position = MCPCMatrix * vertexMC;"]).result),a.Vertex=o,a.Geometry=c,a.Fragment=f},t.replaceShaderTCoord=(a,i,s)=>{if(e.lastBoundBO.getCABO().getTCoordOffset()){let o=a.Vertex,c=a.Geometry,f=a.Fragment;if(e.drawingEdges)return;o=k.substitute(o,"//VTK::TCoord::Impl","tcoordVCVSOutput = tcoordMC;").result;let u=e.openGLActor.getActiveTextures(),g=2,l=2;if(u&&u.length>0&&(g=u[0].getComponents(),u[0].getTarget()===e.context.TEXTURE_CUBE_MAP&&(l=3)),e.renderable.getColorTextureMap()&&(g=e.renderable.getColorTextureMap().getPointData().getScalars().getNumberOfComponents(),l=2),l===2){if(o=k.substitute(o,"//VTK::TCoord::Dec","attribute vec2 tcoordMC; varying vec2 tcoordVCVSOutput;").result,c=k.substitute(c,"//VTK::TCoord::Dec",["in vec2 tcoordVCVSOutput[];","out vec2 tcoordVCGSOutput;"]).result,c=k.substitute(c,"//VTK::TCoord::Impl","tcoordVCGSOutput = tcoordVCVSOutput[i];").result,f=k.substitute(f,"//VTK::TCoord::Dec",["varying vec2 tcoordVCVSOutput;","uniform sampler2D texture1;"]).result,u&&u.length>=1)switch(g){case 1:f=k.substitute(f,"//VTK::TCoord::Impl",["  vec4 tcolor = texture2D(texture1, tcoordVCVSOutput);","  ambientColor = ambientColor*tcolor.r;","  diffuseColor = diffuseColor*tcolor.r;"]).result;break;case 2:f=k.substitute(f,"//VTK::TCoord::Impl",["  vec4 tcolor = texture2D(texture1, tcoordVCVSOutput);","  ambientColor = ambientColor*tcolor.r;","  diffuseColor = diffuseColor*tcolor.r;","  opacity = opacity * tcolor.g;"]).result;break;default:f=k.substitute(f,"//VTK::TCoord::Impl",["  vec4 tcolor = texture2D(texture1, tcoordVCVSOutput);","  ambientColor = ambientColor*tcolor.rgb;","  diffuseColor = diffuseColor*tcolor.rgb;","  opacity = opacity * tcolor.a;"]).result}}else switch(o=k.substitute(o,"//VTK::TCoord::Dec","attribute vec3 tcoordMC; varying vec3 tcoordVCVSOutput;").result,c=k.substitute(c,"//VTK::TCoord::Dec",["in vec3 tcoordVCVSOutput[];","out vec3 tcoordVCGSOutput;"]).result,c=k.substitute(c,"//VTK::TCoord::Impl","tcoordVCGSOutput = tcoordVCVSOutput[i];").result,f=k.substitute(f,"//VTK::TCoord::Dec",["varying vec3 tcoordVCVSOutput;","uniform samplerCube texture1;"]).result,g){case 1:f=k.substitute(f,"//VTK::TCoord::Impl",["  vec4 tcolor = textureCube(texture1, tcoordVCVSOutput);","  ambientColor = ambientColor*tcolor.r;","  diffuseColor = diffuseColor*tcolor.r;"]).result;break;case 2:f=k.substitute(f,"//VTK::TCoord::Impl",["  vec4 tcolor = textureCube(texture1, tcoordVCVSOutput);","  ambientColor = ambientColor*tcolor.r;","  diffuseColor = diffuseColor*tcolor.r;","  opacity = opacity * tcolor.g;"]).result;break;default:f=k.substitute(f,"//VTK::TCoord::Impl",["  vec4 tcolor = textureCube(texture1, tcoordVCVSOutput);","  ambientColor = ambientColor*tcolor.rgb;","  diffuseColor = diffuseColor*tcolor.rgb;","  opacity = opacity * tcolor.a;"]).result}a.Vertex=o,a.Geometry=c,a.Fragment=f}},t.replaceShaderClip=(a,i,s)=>{let o=a.Vertex,c=a.Fragment;if(e.renderable.getNumberOfClippingPlanes()){let f=e.renderable.getNumberOfClippingPlanes();o=k.substitute(o,"//VTK::Clip::Dec",["uniform int numClipPlanes;",`uniform vec4 clipPlanes[${f}];`,`varying float clipDistancesVSOutput[${f}];`]).result,o=k.substitute(o,"//VTK::Clip::Impl",[`for (int planeNum = 0; planeNum < ${f}; planeNum++)`,"    {","    if (planeNum >= numClipPlanes)","        {","        break;","        }","    clipDistancesVSOutput[planeNum] = dot(clipPlanes[planeNum], vertexMC);","    }"]).result,c=k.substitute(c,"//VTK::Clip::Dec",["uniform int numClipPlanes;",`varying float clipDistancesVSOutput[${f}];`]).result,c=k.substitute(c,"//VTK::Clip::Impl",[`for (int planeNum = 0; planeNum < ${f}; planeNum++)`,"    {","    if (planeNum >= numClipPlanes)","        {","        break;","        }","    if (clipDistancesVSOutput[planeNum] < 0.0) discard;","    }"]).result}a.Vertex=o,a.Fragment=c},t.getCoincidentParameters=(a,i)=>{let s={factor:0,offset:0},o=i.getProperty();if(e.renderable.getResolveCoincidentTopology()==tt.PolygonOffset||o.getEdgeVisibility()&&o.getRepresentation()===Qn.SURFACE){let f=e.lastBoundBO.getPrimitiveType();f===Ae.Points||o.getRepresentation()===Qn.POINTS?s=e.renderable.getCoincidentTopologyPointOffsetParameter():f===Ae.Lines||o.getRepresentation()===Qn.WIREFRAME?s=e.renderable.getCoincidentTopologyLineOffsetParameters():(f===Ae.Tris||f===Ae.TriStrips)&&(s=e.renderable.getCoincidentTopologyPolygonOffsetParameters()),(f===Ae.TrisEdges||f===Ae.TriStripsEdges)&&(s=e.renderable.getCoincidentTopologyPolygonOffsetParameters(),s.factor/=2,s.offset/=2)}let c=e._openGLRenderer.getSelector();return c&&c.getFieldAssociation()===Ki.FIELD_ASSOCIATION_POINTS&&(s.offset-=2),s},t.replaceShaderPicking=(a,i,s)=>{let o=a.Fragment,c=a.Vertex;if(o=k.substitute(o,"//VTK::Picking::Dec",["uniform int picking;","//VTK::Picking::Dec"]).result,!!e._openGLRenderer.getSelector()){switch((e.lastSelectionState===Je.ID_LOW24||e.lastSelectionState===Je.ID_HIGH24)&&(c=k.substitute(c,"//VTK::Picking::Dec",[`flat out int vertexIDVSOutput;
`,`uniform int VertexIDOffset;
`]).result,c=k.substitute(c,"//VTK::Picking::Impl",`  vertexIDVSOutput = gl_VertexID + VertexIDOffset;
`).result,o=k.substitute(o,"//VTK::Picking::Dec",`flat in int vertexIDVSOutput;
`).result,o=k.substitute(o,"//VTK::Picking::Impl",["  int idx = vertexIDVSOutput;","//VTK::Picking::Impl"]).result),e.lastSelectionState){case Je.ID_LOW24:o=k.substitute(o,"//VTK::Picking::Impl","  gl_FragData[0] = vec4(float(idx%256)/255.0, float((idx/256)%256)/255.0, float((idx/65536)%256)/255.0, 1.0);").result;break;case Je.ID_HIGH24:o=k.substitute(o,"//VTK::Picking::Impl","  gl_FragData[0] = vec4(float((idx/16777216)%256)/255.0, 0.0, 0.0, 1.0);").result;break;default:o=k.substitute(o,"//VTK::Picking::Dec","uniform vec3 mapperIndex;").result,o=k.substitute(o,"//VTK::Picking::Impl","  gl_FragData[0] = picking != 0 ? vec4(mapperIndex,1.0) : gl_FragData[0];").result}a.Fragment=o,a.Vertex=c}},t.replaceShaderValues=(a,i,s)=>{if(t.replaceShaderColor(a,i,s),t.replaceShaderNormal(a,i,s),t.replaceShaderLight(a,i,s),t.replaceShaderTCoord(a,i,s),t.replaceShaderPicking(a,i,s),t.replaceShaderClip(a,i,s),t.replaceShaderCoincidentOffset(a,i,s),t.replaceShaderPositionVC(a,i,s),e.haveSeenDepthRequest){let o=a.Fragment;o=k.substitute(o,"//VTK::ZBuffer::Dec","uniform int depthRequest;").result,o=k.substitute(o,"//VTK::ZBuffer::Impl",["if (depthRequest == 1) {","float iz = floor(gl_FragCoord.z*65535.0 + 0.1);","float rf = floor(iz/256.0)/255.0;","float gf = mod(iz,256.0)/255.0;","gl_FragData[0] = vec4(rf, gf, 0.0, 1.0); }"]).result,a.Fragment=o}},t.getNeedToRebuildShaders=(a,i,s)=>{let o=0,c=0,f=a.getPrimitiveType(),u=e.currentInput,g=!1,l=u.getPointData().getNormals(),h=u.getCellData().getNormals(),y=s.getProperty().getInterpolation()===th.FLAT,p=s.getProperty().getRepresentation(),v=a.getOpenGLMode(p,f);if((v===e.context.TRIANGLES||h&&!l||!y&&l||!y&&v===e.context.LINES)&&(g=!0),s.getProperty().getLighting()&&g){o=0;let d=i.getLightsByReference();for(let C=0;C<d.length;++C){let w=d[C];w.getSwitch()>0&&(c++,o===0&&(o=1)),o===1&&(c>1||w.getIntensity()!==1||!w.lightTypeIsHeadLight())&&(o=2),o<3&&w.getPositional()&&(o=3)}}let x=!1,S=e.lastBoundBO.getReferenceByName("lastLightComplexity"),T=e.lastBoundBO.getReferenceByName("lastLightCount");return(S!==o||T!==c)&&(e.lastBoundBO.set({lastLightComplexity:o},!0),e.lastBoundBO.set({lastLightCount:c},!0),x=!0),(!e.currentRenderPass&&e.lastRenderPassShaderReplacement||e.currentRenderPass&&e.currentRenderPass.getShaderReplacement()!==e.lastRenderPassShaderReplacement)&&(x=!0),e.lastHaveSeenDepthRequest!==e.haveSeenDepthRequest||a.getShaderSourceTime().getMTime()<e.renderable.getMTime()||a.getShaderSourceTime().getMTime()<e.currentInput.getMTime()||a.getShaderSourceTime().getMTime()<e.selectionStateChanged.getMTime()||x?(e.lastHaveSeenDepthRequest=e.haveSeenDepthRequest,!0):!1},t.invokeShaderCallbacks=(a,i,s)=>{let o=e.renderable.getViewSpecificProperties().ShadersCallbacks;o&&o.forEach(c=>{c.callback(c.userData,a,i,s)})},t.setMapperShaderParameters=(a,i,s)=>{if(a.getProgram().isUniformUsed("PrimitiveIDOffset")&&a.getProgram().setUniformi("PrimitiveIDOffset",e.primitiveIDOffset),a.getProgram().isUniformUsed("VertexIDOffset")&&a.getProgram().setUniformi("VertexIDOffset",e.vertexIDOffset),a.getCABO().getElementCount()&&(e.VBOBuildTime.getMTime()>a.getAttributeUpdateTime().getMTime()||a.getShaderSourceTime().getMTime()>a.getAttributeUpdateTime().getMTime())){let f=e.lastBoundBO.getReferenceByName("lastLightComplexity");a.getProgram().isAttributeUsed("vertexMC")&&(a.getVAO().addAttributeArray(a.getProgram(),a.getCABO(),"vertexMC",a.getCABO().getVertexOffset(),a.getCABO().getStride(),e.context.FLOAT,3,!1)||Jn("Error setting vertexMC in shader VAO.")),a.getProgram().isAttributeUsed("normalMC")&&a.getCABO().getNormalOffset()&&f>0?a.getVAO().addAttributeArray(a.getProgram(),a.getCABO(),"normalMC",a.getCABO().getNormalOffset(),a.getCABO().getStride(),e.context.FLOAT,3,!1)||Jn("Error setting normalMC in shader VAO."):a.getVAO().removeAttributeArray("normalMC"),e.renderable.getCustomShaderAttributes().forEach((u,g)=>{a.getProgram().isAttributeUsed(`${u}MC`)&&(a.getVAO().addAttributeArray(a.getProgram(),a.getCABO(),`${u}MC`,a.getCABO().getCustomData()[g].offset,a.getCABO().getStride(),e.context.FLOAT,a.getCABO().getCustomData()[g].components,!1)||Jn(`Error setting ${u}MC in shader VAO.`))}),a.getProgram().isAttributeUsed("tcoordMC")&&a.getCABO().getTCoordOffset()?a.getVAO().addAttributeArray(a.getProgram(),a.getCABO(),"tcoordMC",a.getCABO().getTCoordOffset(),a.getCABO().getStride(),e.context.FLOAT,a.getCABO().getTCoordComponents(),!1)||Jn("Error setting tcoordMC in shader VAO."):a.getVAO().removeAttributeArray("tcoordMC"),a.getProgram().isAttributeUsed("scalarColor")&&a.getCABO().getColorComponents()?a.getVAO().addAttributeArray(a.getProgram(),a.getCABO().getColorBO(),"scalarColor",a.getCABO().getColorOffset(),a.getCABO().getColorBOStride(),e.context.UNSIGNED_BYTE,4,!0)||Jn("Error setting scalarColor in shader VAO."):a.getVAO().removeAttributeArray("scalarColor"),a.getAttributeUpdateTime().modified()}if(e.renderable.getNumberOfClippingPlanes()){let f=e.renderable.getNumberOfClippingPlanes(),u=[],g=a.getCABO().getCoordShiftAndScaleEnabled()?a.getCABO().getInverseShiftAndScaleMatrix():null,l=g?F.copy(e.tmpMat4,s.getMatrix()):s.getMatrix();g&&(F.transpose(l,l),F.multiply(l,l,g),F.transpose(l,l));for(let h=0;h<f;h++){let y=[];e.renderable.getClippingPlaneInDataCoords(l,h,y);for(let p=0;p<4;p++)u.push(y[p])}a.getProgram().setUniformi("numClipPlanes",f),a.getProgram().setUniform4fv("clipPlanes",u)}e.internalColorTexture&&a.getProgram().isUniformUsed("texture1")&&a.getProgram().setUniformi("texture1",e.internalColorTexture.getTextureUnit());let o=e.openGLActor.getActiveTextures();if(o)for(let f=0;f<o.length;++f){let u=o[f].getTextureUnit(),g=`texture${u+1}`;a.getProgram().isUniformUsed(g)&&a.getProgram().setUniformi(g,u)}if(e.haveSeenDepthRequest&&a.getProgram().setUniformi("depthRequest",e.renderDepth?1:0),a.getProgram().isUniformUsed("coffset")){let f=t.getCoincidentParameters(i,s);a.getProgram().setUniformf("coffset",f.offset),a.getProgram().isUniformUsed("cfactor")&&a.getProgram().setUniformf("cfactor",f.factor)}a.setMapperShaderParameters(i,s,e._openGLRenderer.getTiledSizeAndOrigin());let c=e._openGLRenderer.getSelector();a.getProgram().setUniform3fArray("mapperIndex",c?c.getPropColorValue():[0,0,0]),a.getProgram().setUniformi("picking",c?c.getCurrentPass()+1:0)},t.setLightingShaderParameters=(a,i,s)=>{let o=e.lastBoundBO.getReferenceByName("lastLightComplexity");if(o<2)return;let c=a.getProgram(),f=0,u=i.getLightsByReference();for(let l=0;l<u.length;++l){let h=u[l];if(h.getSwitch()>0){let y=h.getColorByReference(),p=h.getIntensity();e.lightColor[0]=y[0]*p,e.lightColor[1]=y[1]*p,e.lightColor[2]=y[2]*p;let v=h.getDirection(),x=i.getActiveCamera().getViewMatrix(),S=[...v];h.lightTypeIsSceneLight()&&(S[0]=x[0]*v[0]+x[1]*v[1]+x[2]*v[2],S[1]=x[4]*v[0]+x[5]*v[1]+x[6]*v[2],S[2]=x[8]*v[0]+x[9]*v[1]+x[10]*v[2],$e(S)),e.lightDirection[0]=S[0],e.lightDirection[1]=S[1],e.lightDirection[2]=S[2],$e(e.lightDirection),c.setUniform3fArray(`lightColor${f}`,e.lightColor),c.setUniform3fArray(`lightDirectionVC${f}`,e.lightDirection),f++}}if(o<3)return;let g=i.getActiveCamera().getViewMatrix();F.transpose(g,g),f=0;for(let l=0;l<u.length;++l){let h=u[l];if(h.getSwitch()>0){let y=h.getTransformedPosition(),p=new Float64Array(3);W.transformMat4(p,y,g),c.setUniform3fArray(`lightAttenuation${f}`,h.getAttenuationValuesByReference()),c.setUniformi(`lightPositional${f}`,h.getPositional()),c.setUniformf(`lightExponent${f}`,h.getExponent()),c.setUniformf(`lightConeAngle${f}`,h.getConeAngle()),c.setUniform3fArray(`lightPositionVC${f}`,[p[0],p[1],p[2]]),f++}}};function n(a,i,s){return i.identity(s),a.reduce((o,c,f)=>f===0?c?i.copy(o,c):i.identity(o):c?i.multiply(o,o,c):o,s)}t.setCameraShaderParameters=(a,i,s)=>{let o=a.getProgram(),c=e.openGLCamera.getKeyMatrices(i),f=i.getActiveCamera(),u=e.openGLCamera.getKeyMatrixTime().getMTime(),g=o.getLastCameraMTime(),l=a.getCABO().getCoordShiftAndScaleEnabled()?a.getCABO().getInverseShiftAndScaleMatrix():null,h=s.getIsIdentity(),y=h?{mcwc:null,normalMatrix:null}:e.openGLActor.getKeyMatrices();if(s.getCoordinateSystem()===uO.DISPLAY){let p=e._openGLRenderer.getTiledSizeAndOrigin();F.identity(e.tmpMat4),e.tmpMat4[0]=2/p.usize,e.tmpMat4[12]=-1,e.tmpMat4[5]=2/p.vsize,e.tmpMat4[13]=-1,F.multiply(e.tmpMat4,e.tmpMat4,l),o.setUniformMatrix("MCPCMatrix",e.tmpMat4)}else o.setUniformMatrix("MCPCMatrix",n([c.wcpc,y.mcwc,l],F,e.tmpMat4));o.isUniformUsed("MCVCMatrix")&&o.setUniformMatrix("MCVCMatrix",n([c.wcvc,y.mcwc,l],F,e.tmpMat4)),o.isUniformUsed("normalMatrix")&&o.setUniformMatrix3x3("normalMatrix",n([c.normalMatrix,y.normalMatrix],K,e.tmpMat3)),g!==u&&(o.isUniformUsed("cameraParallel")&&o.setUniformi("cameraParallel",f.getParallelProjection()),o.setLastCameraMTime(u)),h||o.setLastCameraMTime(0)},t.setPropertyShaderParameters=(a,i,s)=>{let o=a.getProgram(),c=s.getProperty(),f=e.drawingEdges||c.getRepresentation()===Qn.WIREFRAME?c.getEdgeOpacity():c.getOpacity(),u=e.drawingEdges?c.getEdgeColorByReference():c.getAmbientColorByReference(),g=e.drawingEdges?c.getEdgeColorByReference():c.getDiffuseColorByReference(),l=e.drawingEdges?1:c.getAmbient(),h=e.drawingEdges?0:c.getDiffuse(),y=e.drawingEdges?0:c.getSpecular(),p=c.getSpecularPower();o.setUniformf("opacityUniform",f),o.setUniform3fArray("ambientColorUniform",u),o.setUniform3fArray("diffuseColorUniform",g),o.setUniformf("ambient",l),o.setUniformf("diffuse",h);let v=e.lastBoundBO.getReferenceByName("lastLightComplexity");if(v<1)return;let x=c.getSpecularColorByReference();if(o.setUniform3fArray("specularColorUniform",x),o.setUniformf("specularPowerUniform",p),o.setUniformf("specular",y),o.isUniformUsed("ambientIntensityBF")){if(c=s.getBackfaceProperty(),f=c.getOpacity(),u=c.getAmbientColor(),l=c.getAmbient(),g=c.getDiffuseColor(),h=c.getDiffuse(),x=c.getSpecularColor(),y=c.getSpecular(),o.setUniformf("ambientIntensityBF",l),o.setUniformf("diffuseIntensityBF",h),o.setUniformf("opacityUniformBF",f),o.setUniform3fArray("ambientColorUniformBF",u),o.setUniform3fArray("diffuseColorUniformBF",g),v<1)return;o.setUniformf("specularIntensityBF",y),o.setUniform3fArray("specularColorUniformBF",x),o.setUniformf("specularPowerUniformBF",p)}},t.updateMaximumPointCellIds=(a,i)=>{let s=e._openGLRenderer.getSelector();if(s){if(e.selectionWebGLIdsToVTKIds?.points?.length){let o=e.selectionWebGLIdsToVTKIds.points.length;s.setMaximumPointId(o-1)}else e.currentInput&&e.currentInput.getPoints()&&s.setMaximumPointId(e.currentInput.getPoints().getNumberOfPoints()-1);if(e.selectionWebGLIdsToVTKIds?.cells?.length){let o=e.selectionWebGLIdsToVTKIds.cells.length;s.setMaximumCellId(o-1)}s.getFieldAssociation()===Ki.FIELD_ASSOCIATION_POINTS&&(e.pointPicking=!0)}},t.renderPieceStart=(a,i)=>{e.primitiveIDOffset=0,e.vertexIDOffset=0;let s=lO(e._openGLRenderer);e.lastSelectionState!==s&&(e.selectionStateChanged.modified(),e.lastSelectionState=s),e._openGLRenderer.getSelector()&&e._openGLRenderer.getSelector().renderProp(i),t.updateBufferObjects(a,i),e.renderable.getColorTextureMap()&&e.internalColorTexture.activate(),e.lastBoundBO=null},t.renderPieceDraw=(a,i)=>{let s=i.getProperty().getRepresentation(),o=i.getProperty().getEdgeVisibility()&&s===Qn.SURFACE,c=e._openGLRenderer.getSelector(),f=c&&c.getFieldAssociation()===Ki.FIELD_ASSOCIATION_POINTS&&(e.lastSelectionState===Je.ID_LOW24||e.lastSelectionState===Je.ID_HIGH24),u=e.activePrimitiveIndices;for(let g=0;g<u.length;g++){let l=u[g];e.primitives[l].setPointPicking(f);let h=e.primitives[l].getCABO();h.getElementCount()&&(e.drawingEdges=o&&(l===Ae.TrisEdges||l===Ae.TriStripsEdges),(!e.drawingEdges||!(e.renderDepth||e.lastSelectionState>=0))&&(e.lastBoundBO=e.primitives[l],e.primitiveIDOffset+=e.primitives[l].drawArrays(a,i,s,t),h.getIndexed()||(e.vertexIDOffset+=h.getElementCount())))}},t.renderPieceFinish=(a,i)=>{e.LastBoundBO&&e.LastBoundBO.getVAO().release(),e.renderable.getColorTextureMap()&&e.internalColorTexture.deactivate()},t.renderPiece=(a,i)=>{if(t.invokeEvent(cO),e.renderable.getStatic()||e.renderable.update(),e.currentInput=e.renderable.getInputData(),t.invokeEvent(fO),!e.currentInput){Jn("No input!");return}if(!e.currentInput.getPoints||!e.currentInput.getPoints().getNumberOfValues())return;let s=e.context,o=i.getProperty().getBackfaceCulling(),c=i.getProperty().getFrontfaceCulling();!o&&!c?e._openGLRenderWindow.disableCullFace():c?(e._openGLRenderWindow.enableCullFace(),e._openGLRenderWindow.setCullFaceMode(s.FRONT)):(e._openGLRenderWindow.enableCullFace(),e._openGLRenderWindow.setCullFaceMode(s.BACK)),t.renderPieceStart(a,i),t.renderPieceDraw(a,i),t.renderPieceFinish(a,i)},t.updateBufferObjects=(a,i)=>{if(t.getNeedToRebuildBufferObjects(a,i)){t.buildBufferObjects(a,i),e.activePrimitiveIndices.length=0;for(let s=Ae.Start;s<Ae.End;s++)e.primitives[s].getCABO().getElementCount()&&e.activePrimitiveIndices.push(s)}t.updateMaximumPointCellIds()};function r(){let a=e._openGLRenderer?e._openGLRenderer.getSelector():null;return!!a&&e.renderable.getPopulateSelectionSettings()&&a.getFieldAssociation()===Ki.FIELD_ASSOCIATION_CELLS}t.getNeedToRebuildBufferObjects=(a,i)=>{let s=e.VBOBuildTime.getMTime();return s<t.getMTime()||s<e.renderable.getMTime()||s<i.getMTime()||s<e.currentInput.getMTime()||r()!==e.lastForceFlatten},t.buildBufferObjects=(a,i)=>{let s=e.currentInput;if(s===null)return;e.renderable.mapScalars(s,1);let o=e.renderable.getColorMapColors();e.haveCellScalars=!1;let c=e.renderable.getScalarMode();e.renderable.getScalarVisibility()&&(c===Xi.USE_CELL_DATA||c===Xi.USE_CELL_FIELD_DATA||c===Xi.USE_FIELD_DATA||!s.getPointData().getScalars())&&c!==Xi.USE_POINT_FIELD_DATA&&o&&(e.haveCellScalars=!0);let f=i.getProperty().getInterpolation()!==th.FLAT?s.getPointData().getNormals():null;f===null&&s.getCellData().getNormals()&&(e.haveCellNormals=!0,f=s.getCellData().getNormals());let u=i.getProperty().getRepresentation(),g=s.getPointData().getTCoords();e.openGLActor.getActiveTextures()||(g=null);let l=!1;if(e.renderable.getColorCoordinates()){g=e.renderable.getColorCoordinates(),l=e.renderable.getAreScalarsMappedFromCells(),e.internalColorTexture||(e.internalColorTexture=de.newInstance({resizable:!0}));let v=e.internalColorTexture;v.setMinificationFilter(nh.NEAREST),v.setMagnificationFilter(nh.NEAREST),v.setWrapS(rh.CLAMP_TO_EDGE),v.setWrapT(rh.CLAMP_TO_EDGE),v.setOpenGLRenderWindow(e._openGLRenderWindow);let x=e.renderable.getColorTextureMap(),S=x.getExtent(),T=x.getPointData().getScalars();v.create2DFromRaw({width:S[1]-S[0]+1,height:S[3]-S[2]+1,numComps:T.getNumberOfComponents(),dataType:T.getDataType(),data:T.getData()}),v.activate(),v.sendParameters(),v.deactivate()}let h=e.renderable.getCustomShaderAttributes().map(v=>s.getPointData().getArrayByName(v)),y=r();e.lastForceFlatten=y;let p=`${s.getMTime()}A${u}B${s.getMTime()}C${f?f.getMTime():1}D${o?o.getMTime():1}E${i.getProperty().getEdgeVisibility()}F${g?g.getMTime():1}G${h.map(v=>v.getMTime()).join(",")}H${y}`;if(e.VBOBuildString!==p){let v={points:s.getPoints(),normals:f,tcoords:g,colors:o,cellOffset:0,vertexOffset:0,useTCoordsPerCell:l,haveCellScalars:e.haveCellScalars,haveCellNormals:e.haveCellNormals,customAttributes:h,forceFlatten:y};y?e.selectionWebGLIdsToVTKIds={points:null,cells:null}:e.selectionWebGLIdsToVTKIds=null;let x=[{inRep:"verts",cells:s.getVerts()},{inRep:"lines",cells:s.getLines()},{inRep:"polys",cells:s.getPolys()},{inRep:"strips",cells:s.getStrips()},{inRep:"polys",cells:s.getPolys()},{inRep:"strips",cells:s.getStrips()}],S=i.getProperty().getEdgeVisibility()&&u===Qn.SURFACE;for(let T=Ae.Start;T<Ae.End;T++)T!==Ae.TrisEdges&&T!==Ae.TriStripsEdges?(v.cellOffset+=e.primitives[T].getCABO().createVBO(x[T].cells,x[T].inRep,u,v,e.selectionWebGLIdsToVTKIds),v.vertexOffset+=e.primitives[T].getCABO().getElementCount()):S?e.primitives[T].getCABO().createVBO(x[T].cells,x[T].inRep,Qn.WIREFRAME,{...v,tcoords:null,colors:null,haveCellScalars:!1,haveCellNormals:!1}):e.primitives[T].releaseGraphicsResources();e.renderable.getPopulateSelectionSettings()&&e.renderable.setSelectionWebGLIdsToVTKIds(e.selectionWebGLIdsToVTKIds),e.VBOBuildString=p}e.VBOBuildTime.modified()},t.getAllocatedGPUMemoryInBytes=()=>{let a=0;return e.primitives.forEach(i=>{a+=i.getAllocatedGPUMemoryInBytes()}),a},t.releaseGraphicsResources=a=>$i(t,e,a),t.delete=at(()=>t.releaseGraphicsResources(),t.delete)}var pO={context:null,VBOBuildTime:0,VBOBuildString:null,primitives:null,primTypes:null,shaderRebuildString:null,tmpMat4:null,ambientColor:[],diffuseColor:[],specularColor:[],lightColor:[],lightDirection:[],lastHaveSeenDepthRequest:!1,haveSeenDepthRequest:!1,lastSelectionState:Je.MIN_KNOWN_PASS-1,selectionStateChanged:null,selectionWebGLIdsToVTKIds:null,pointPicking:!1,lastForceFlatten:!1};function ah(t,e,n={}){Object.assign(e,pO,n),ue.extend(t,e,n),nt.implementReplaceShaderCoincidentOffset(t,e,n),nt.implementBuildShadersWithReplacements(t,e,n),e.primitives=[],e.activePrimitiveIndices=[],e.primTypes=Ae,e.tmpMat3=K.identity(new Float64Array(9)),e.tmpMat4=F.identity(new Float64Array(16));for(let r=Ae.Start;r<Ae.End;r++)e.primitives[r]=Ye.newInstance(),e.primitives[r].setPrimitiveType(r),e.primitives[r].set({lastLightComplexity:0,lastLightCount:0,lastSelectionPass:!1},!0);ie(t,e,["context"]),e.VBOBuildTime={},se(e.VBOBuildTime,{mtime:0}),e.selectionStateChanged={},se(e.selectionStateChanged,{mtime:0}),gO(t,e)}var ih=J(ah,"vtkOpenGLPolyDataMapper"),sh={newInstance:ih,extend:ah};le("vtkMapper",ih);var{vtkErrorMacro:Yi}=O;function hO(t,e){e.classHierarchy.push("vtkOpenGLCutterMapper");let n={...t};t.replaceShaderClip=(r,a,i)=>{let s=r.Vertex,o=r.Fragment,c=e.renderable.getSupportedImplicitFunctionName();if(!c){Yi("No cut function set.");return}if(e.renderable.getNumberOfClippingPlanes()){let g=e.renderable.getNumberOfClippingPlanes();s=k.substitute(s,"//VTK::Clip::Dec",["uniform int numClipPlanes;",`uniform vec4 clipPlanes[${g}];`,`varying float clipDistancesVSOutput[${g}];`,"//VTK::Clip::Dec"]).result,s=k.substitute(s,"//VTK::Clip::Impl",[`for (int planeNum = 0; planeNum < ${g}; planeNum++)`,"    {","    if (planeNum >= numClipPlanes)","        {","        break;","        }","    clipDistancesVSOutput[planeNum] = dot(clipPlanes[planeNum], vertexMC);","    }","//VTK::Clip::Impl"]).result,o=k.substitute(o,"//VTK::Clip::Dec",["uniform int numClipPlanes;",`varying float clipDistancesVSOutput[${g}];`,"//VTK::Clip::Dec"]).result,o=k.substitute(o,"//VTK::Clip::Impl",[`for (int planeNum = 0; planeNum < ${g}; planeNum++)`,"    {","    if (planeNum >= numClipPlanes)","        {","        break;","        }","    if (clipDistancesVSOutput[planeNum] < 0.0) discard;","    }","//VTK::Clip::Impl"]).result}let f=[],u=[];switch(c){case"vtkPlane":f=["uniform vec3 cutPlaneOrigin;","uniform vec3 cutPlaneNormal;","uniform float cutValue;"],u=["cutDistanceVSOutput = dot(cutPlaneNormal, cutFunctionPoint - cutPlaneOrigin) - cutValue;"];break;case"vtkSphere":f=["uniform vec3 cutSphereCenter;","uniform vec3 cutSphereRadius;","uniform int cutSphereUsesAxisRadii;"],u=["vec3 cutSphereDelta = cutFunctionPoint - cutSphereCenter;","if (cutSphereUsesAxisRadii == 1) {","  vec3 cutSphereNormalizedDelta = cutSphereDelta / cutSphereRadius;","  cutDistanceVSOutput = dot(cutSphereNormalizedDelta, cutSphereNormalizedDelta) - 1.0;","} else {","  cutDistanceVSOutput = dot(cutSphereDelta, cutSphereDelta) - cutSphereRadius.x * cutSphereRadius.x;","}"];break;case"vtkBox":f=["uniform vec3 cutBoxMinPoint;","uniform vec3 cutBoxMaxPoint;"],u=["float cutBoxMinDistance = -1.0e20;","float cutBoxDistance = 0.0;","bool cutBoxInside = true;","bool cutBoxIsDegenerate = false;","for (int i = 0; i < 3; ++i) {","  float cutBoxLength = cutBoxMaxPoint[i] - cutBoxMinPoint[i];","  float cutBoxDist = 0.0;","  if (cutBoxLength != 0.0) {","    float cutBoxT = (cutFunctionPoint[i] - cutBoxMinPoint[i]) / cutBoxLength;","    if (cutBoxT < 0.0) {","      cutBoxInside = false;","      cutBoxDist = cutBoxMinPoint[i] - cutFunctionPoint[i];","    } else if (cutBoxT > 1.0) {","      cutBoxInside = false;","      cutBoxDist = cutFunctionPoint[i] - cutBoxMaxPoint[i];","    } else if (cutBoxT <= 0.5) {","      cutBoxDist = cutBoxMinPoint[i] - cutFunctionPoint[i];","      cutBoxMinDistance = max(cutBoxMinDistance, cutBoxDist);","    } else {","      cutBoxDist = cutFunctionPoint[i] - cutBoxMaxPoint[i];","      cutBoxMinDistance = max(cutBoxMinDistance, cutBoxDist);","    }","  } else {","    // Degenerate axis: box has zero thickness along this dimension","    cutBoxIsDegenerate = true;","    cutBoxDist = abs(cutFunctionPoint[i] - cutBoxMinPoint[i]);","    if (cutBoxDist > 0.0) {","      cutBoxInside = false;","    }","  }","  if (cutBoxDist > 0.0) {","    cutBoxDistance += cutBoxDist * cutBoxDist;","  }","}","// Guard against degenerate boxes (zero size on one or more axes)","if (cutBoxIsDegenerate && cutBoxInside) {","  cutDistanceVSOutput = 0.0;","} else if (cutBoxInside) {","  cutDistanceVSOutput = cutBoxMinDistance;","} else {","  cutDistanceVSOutput = sqrt(cutBoxDistance);","}"];break;case"vtkCylinder":f=["uniform vec3 cutCylinderCenter;","uniform vec3 cutCylinderAxis;","uniform float cutCylinderRadius;"],u=["vec3 cutCylinderDelta = cutFunctionPoint - cutCylinderCenter;","float cutCylinderAxisLengthSq = dot(cutCylinderAxis, cutCylinderAxis);","float cutCylinderProjection = dot(cutCylinderAxis, cutCylinderDelta);","cutDistanceVSOutput = cutCylinderAxisLengthSq > 0.0 ? dot(cutCylinderDelta, cutCylinderDelta) - cutCylinderProjection * cutCylinderProjection / cutCylinderAxisLengthSq - cutCylinderRadius * cutCylinderRadius : dot(cutCylinderDelta, cutCylinderDelta) - cutCylinderRadius * cutCylinderRadius;"];break;case"vtkCone":f=["uniform float cutConeTanThetaSquared;"],u=["cutDistanceVSOutput = cutFunctionPoint.y * cutFunctionPoint.y + cutFunctionPoint.z * cutFunctionPoint.z - cutFunctionPoint.x * cutFunctionPoint.x * cutConeTanThetaSquared;"];break;default:Yi("No cut function set.");break}s=k.substitute(s,"//VTK::Clip::Dec",["uniform mat4 cutFunctionMatrix;","varying float cutDistanceVSOutput;",...f]).result,s=k.substitute(s,"//VTK::Clip::Impl",["vec3 cutFunctionPoint = (cutFunctionMatrix * vertexMC).xyz;",...u]).result,o=k.substitute(o,"//VTK::Clip::Dec",["varying float cutDistanceVSOutput;","uniform float cutWidth;"]).result,o=k.substitute(o,"//VTK::Clip::Impl",["if (abs(cutDistanceVSOutput) > max(fwidth(cutDistanceVSOutput) * cutWidth, 1e-6)) discard;"]).result,r.Vertex=s,r.Fragment=o},t.replaceShaderValues=(r,a,i)=>{n.replaceShaderValues(r,a,i),e.renderable.getSupportedImplicitFunctionName()&&(r.Fragment=k.substitute(r.Fragment,"//VTK::UniformFlow::Impl",["  float cutterDistanceDx = dFdx(cutDistanceVSOutput);","  float cutterDistanceDy = dFdy(cutDistanceVSOutput);","  float cutterDistanceGradient = length(vec2(cutterDistanceDx, cutterDistanceDy));","  if (cutterDistanceGradient <= 0.0 && abs(cutDistanceVSOutput) > 1e-6) discard;"]).result)},t.setMapperShaderParameters=(r,a,i)=>{n.setMapperShaderParameters(r,a,i);let s=e.renderable.getCutFunction(),o=e.renderable.getSupportedImplicitFunctionName();if(!s||!o)return;let c=r.getCABO().getCoordShiftAndScaleEnabled(),f=c?r.getCABO().getInverseShiftAndScaleMatrix():null;c&&!f&&Yi("Failed to retrieve inverse shift and scale matrix for cut function");let u=s.getTransform?.(),g=u?.getMatrix?Array.from(u.getMatrix()):on,l=f?F.multiply(e.tmpMat4,g,f):g,h=r.getProgram();switch(h.isUniformUsed("cutFunctionMatrix")&&h.setUniformMatrix("cutFunctionMatrix",l),o){case"vtkPlane":h.isUniformUsed("cutPlaneOrigin")&&h.setUniform3fArray("cutPlaneOrigin",s.getOrigin()),h.isUniformUsed("cutPlaneNormal")&&h.setUniform3fArray("cutPlaneNormal",s.getNormal()),h.isUniformUsed("cutValue")&&h.setUniformf("cutValue",e.renderable.getCutValue());break;case"vtkSphere":{let y=s.getRadius();if(h.isUniformUsed("cutSphereCenter")&&h.setUniform3fArray("cutSphereCenter",s.getCenter()),h.isUniformUsed("cutSphereRadius")){let p=e.tmpVec3A;Array.isArray(y)?(p[0]=y[0],p[1]=y[1],p[2]=y[2]):(p[0]=y,p[1]=y,p[2]=y),h.setUniform3fArray("cutSphereRadius",p)}h.isUniformUsed("cutSphereUsesAxisRadii")&&h.setUniformi("cutSphereUsesAxisRadii",Array.isArray(y)?1:0);break}case"vtkBox":{let y=s.getBounds();if(h.isUniformUsed("cutBoxMinPoint")){let p=e.tmpVec3A;p[0]=y[0],p[1]=y[2],p[2]=y[4],h.setUniform3fArray("cutBoxMinPoint",p)}if(h.isUniformUsed("cutBoxMaxPoint")){let p=e.tmpVec3B;p[0]=y[1],p[1]=y[3],p[2]=y[5],h.setUniform3fArray("cutBoxMaxPoint",p)}break}case"vtkCylinder":h.isUniformUsed("cutCylinderCenter")&&h.setUniform3fArray("cutCylinderCenter",s.getCenter()),h.isUniformUsed("cutCylinderAxis")&&h.setUniform3fArray("cutCylinderAxis",s.getAxis()),h.isUniformUsed("cutCylinderRadius")&&h.setUniformf("cutCylinderRadius",s.getRadius());break;case"vtkCone":if(h.isUniformUsed("cutConeTanThetaSquared")){let y=Math.tan(me.radiansFromDegrees(s.getAngle()));h.setUniformf("cutConeTanThetaSquared",y*y)}break;default:Yi("No cut function set.");break}h.isUniformUsed("cutWidth")&&h.setUniformf("cutWidth",e.renderable.getCutWidth())}}var vO={tmpVec3A:null,tmpVec3B:null};function dO(t,e,n={}){Object.assign(e,vO,n),sh.extend(t,e,n),e.tmpVec3A=[0,0,0],e.tmpVec3B=[0,0,0],hO(t,e)}var TO=O.newInstance(dO,"vtkOpenGLCutterMapper");le("vtkCutterMapper",TO);var{vtkDebugMacro:xO}=Ce;function yO(t,e){e.classHierarchy.push("vtkOpenGLPixelSpaceCallbackMapper"),t.opaquePass=(n,r)=>{e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e._openGLRenderWindow=e._openGLRenderer.getLastAncestorOfType("vtkOpenGLRenderWindow");let a=e._openGLRenderer.getAspectRatio(),i=e._openGLRenderer?e._openGLRenderer.getRenderable().getActiveCamera():null,s=e._openGLRenderer.getTiledSizeAndOrigin(),o=null;if(e.renderable.getUseZValues()){let c=r.getZBufferTexture(),f=Math.floor(c.getWidth()),u=Math.floor(c.getHeight()),g=e._openGLRenderWindow.getContext();c.bind();let l=r.getFramebuffer();l?l.saveCurrentBindingsAndBuffers():xO("No framebuffer to save/restore");let h=g.createFramebuffer();g.bindFramebuffer(g.FRAMEBUFFER,h),g.framebufferTexture2D(g.FRAMEBUFFER,g.COLOR_ATTACHMENT0,g.TEXTURE_2D,c.getHandle(),0),g.checkFramebufferStatus(g.FRAMEBUFFER)===g.FRAMEBUFFER_COMPLETE&&(o=new Uint8Array(f*u*4),g.viewport(0,0,f,u),g.readPixels(0,0,f,u,g.RGBA,g.UNSIGNED_BYTE,o)),l&&l.restorePreviousBindingsAndBuffers(),g.deleteFramebuffer(h)}e.renderable.invokeCallback(e.renderable.getInputData(),i,a,s,o)},t.queryPass=(n,r)=>{n&&e.renderable.getUseZValues()&&r.requestDepth()}}var mO={};function SO(t,e,n={}){Object.assign(e,mO,n),ue.extend(t,e,n),yO(t,e)}var CO=J(SO,"vtkOpenGLPixelSpaceCallbackMapper");le("vtkPixelSpaceCallbackMapper",CO);var oh={BACKGROUND:0,FOREGROUND:1};var ch=`//VTK::System::Dec

/*=========================================================================

  Program:   Visualization Toolkit
  Module:    vtkPolyData2DFS.glsl

  Copyright (c) Ken Martin, Will Schroeder, Bill Lorensen
  All rights reserved.
  See Copyright.txt or http://www.kitware.com/Copyright.htm for details.

     This software is distributed WITHOUT ANY WARRANTY; without even
     the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
     PURPOSE.  See the above copyright notice for more information.

=========================================================================*/

uniform int PrimitiveIDOffset;

// Texture coordinates
//VTK::TCoord::Dec

// Scalar coloring
//VTK::Color::Dec

// Depth Peeling
//VTK::DepthPeeling::Dec

// picking support
//VTK::Picking::Dec

// the output of this shader
//VTK::Output::Dec

// Apple Bug
//VTK::PrimID::Dec

void main()
{
  // Apple Bug
  //VTK::PrimID::Impl

  //VTK::Color::Impl
  //VTK::TCoord::Impl

  //VTK::DepthPeeling::Impl
  //VTK::Picking::Impl

  if (gl_FragData[0].a <= 0.0)
    {
    discard;
    }
}
`;var fh=`//VTK::System::Dec

/*=========================================================================

  Program:   Visualization Toolkit
  Module:    vtkPolyData2DVS.glsl

  Copyright (c) Ken Martin, Will Schroeder, Bill Lorensen
  All rights reserved.
  See Copyright.txt or http://www.kitware.com/Copyright.htm for details.

     This software is distributed WITHOUT ANY WARRANTY; without even
     the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
     PURPOSE.  See the above copyright notice for more information.

=========================================================================*/

// all variables that represent positions or directions have a suffix
// indicating the coordinate system they are in. The possible values are
// MC - Model Coordinates
// WC - WC world coordinates
// VC - View Coordinates
// DC - Display Coordinates

in vec4 vertexWC;

// frag position in VC
//VTK::PositionVC::Dec

// material property values
//VTK::Color::Dec

// Texture coordinates
//VTK::TCoord::Dec

// Apple Bug
//VTK::PrimID::Dec

uniform mat4 WCVCMatrix;  // World to view matrix

void main()
{
  // Apple Bug
  //VTK::PrimID::Impl

  gl_Position = WCVCMatrix*vertexWC;

  //VTK::TCoord::Impl

  //VTK::Color::Impl

  //VTK::PositionVC::Impl
}
`;var{primTypes:Dt}=Ye,{Filter:uh,Wrap:lh}=de,{vtkErrorMacro:pa}=Ce,wO={type:"StartEvent"},OO={type:"EndEvent"};function RO(t,e){e.classHierarchy.push("vtkOpenGLPolyDataMapper2D"),t.buildPass=r=>{r&&(e.openGLActor2D=t.getFirstAncestorOfType("vtkOpenGLActor2D"),e._openGLRenderer=e.openGLActor2D.getFirstAncestorOfType("vtkOpenGLRenderer"),e._openGLRenderWindow=e._openGLRenderer.getLastAncestorOfType("vtkOpenGLRenderWindow"),e.openGLCamera=e._openGLRenderer.getViewNodeFor(e._openGLRenderer.getRenderable().getActiveCamera(),e.openGLCamera))},t.overlayPass=r=>{r&&t.render()},t.getShaderTemplate=(r,a,i)=>{r.Vertex=fh,r.Fragment=ch,r.Geometry=""},t.render=()=>{let r=e._openGLRenderWindow.getContext();if(e.context!==r){e.context=r;for(let s=Dt.Start;s<Dt.End;s++)e.primitives[s].setOpenGLRenderWindow(e._openGLRenderWindow)}let a=e.openGLActor2D.getRenderable(),i=e._openGLRenderer.getRenderable();t.renderPiece(i,a)},t.renderPiece=(r,a)=>{if(t.invokeEvent(wO),e.renderable.getStatic()||e.renderable.update(),e.currentInput=e.renderable.getInputData(),t.invokeEvent(OO),!e.currentInput){pa("No input!");return}if(!e.currentInput.getPoints||!e.currentInput.getPoints().getNumberOfValues())return;let i=e.context,s=a.getProperty();s.getBackfaceCulling()||s.getFrontfaceCulling()?(e._openGLRenderWindow.enableCullFace(),s.getBackfaceCulling()&&s.getFrontfaceCulling()?e._openGLRenderWindow.setCullFaceMode(i.FRONT_AND_BACK):s.getBackfaceCulling()?e._openGLRenderWindow.setCullFaceMode(i.BACK):e._openGLRenderWindow.setCullFaceMode(i.FRONT)):e._openGLRenderWindow.disableCullFace(),t.renderPieceStart(r,a),t.renderPieceDraw(r,a),t.renderPieceFinish(r,a)},t.renderPieceStart=(r,a)=>{if(e.primitiveIDOffset=0,e._openGLRenderer.getSelector())switch(e._openGLRenderer.getSelector().getCurrentPass()){default:e._openGLRenderer.getSelector().renderProp(a)}e.renderable.getColorTextureMap()&&e.internalColorTexture.activate(),t.updateBufferObjects(r,a),e.lastBoundBO=null},t.getNeedToRebuildShaders=(r,a,i)=>r.getShaderSourceTime().getMTime()<e.renderable.getMTime()||r.getShaderSourceTime().getMTime()<e.currentInput.getMTime(),t.updateBufferObjects=(r,a)=>{t.getNeedToRebuildBufferObjects(r,a)&&t.buildBufferObjects(r,a)},t.getNeedToRebuildBufferObjects=(r,a)=>{let i=e.VBOBuildTime.getMTime();return!!(i<t.getMTime()||i<e._openGLRenderWindow.getMTime()||i<e.renderable.getMTime()||i<a.getMTime()||i<e.currentInput.getMTime()||e.renderable.getTransformCoordinate()&&i<r.getMTime())},t.buildBufferObjects=(r,a)=>{let i=e.currentInput;if(i===null)return;e.renderable.mapScalars(i,a.getProperty().getOpacity());let s=e.renderable.getColorMapColors(),o=a.getProperty().getRepresentation(),c=i.getPointData().getTCoords();e.openGLActor2D.getActiveTextures()||(c=null);let f=!1;if(e.renderable.getColorCoordinates()){c=e.renderable.getColorCoordinates(),f=e.renderable.getAreScalarsMappedFromCells(),e.internalColorTexture||(e.internalColorTexture=de.newInstance({resizable:!0}));let h=e.internalColorTexture;h.setMinificationFilter(uh.NEAREST),h.setMagnificationFilter(uh.NEAREST),h.setWrapS(lh.CLAMP_TO_EDGE),h.setWrapT(lh.CLAMP_TO_EDGE),h.setOpenGLRenderWindow(e._openGLRenderWindow);let y=e.renderable.getColorTextureMap(),p=y.getExtent(),v=y.getPointData().getScalars();h.create2DFromRaw({width:p[1]-p[0]+1,height:p[3]-p[2]+1,numComps:v.getNumberOfComponents(),dataType:v.getDataType(),data:v.getData()}),h.activate(),h.sendParameters(),h.deactivate()}let u=e.renderable.getTransformCoordinate(),g=r.getRenderWindow().getViews()[0].getViewportSize(r),l=`${i.getMTime()}A${o}B${i.getMTime()}C${s?s.getMTime():1}D${c?c.getMTime():1}E${u?r.getMTime():1}F${g}`;if(e.VBOBuildString!==l){let h=i.getPoints();if(u){let p=Qt.newInstance(),v=h.getNumberOfPoints();p.setNumberOfPoints(v);let x=[];for(let S=0;S<v;++S){h.getPoint(S,x),u.setValue(x);let T=u.getComputedDoubleViewportValue(r);p.setPoint(S,T[0],T[1],0)}h=p}let y={points:h,tcoords:c,colors:s,cellOffset:0,useTCoordsPerCell:f,haveCellScalars:e.renderable.getAreScalarsMappedFromCells(),customAttributes:e.renderable.getCustomShaderAttributes().map(p=>i.getPointData().getArrayByName(p))};y.cellOffset+=e.primitives[Dt.Points].getCABO().createVBO(i.getVerts(),"verts",o,y),y.cellOffset+=e.primitives[Dt.Lines].getCABO().createVBO(i.getLines(),"lines",o,y),y.cellOffset+=e.primitives[Dt.Tris].getCABO().createVBO(i.getPolys(),"polys",o,y),y.cellOffset+=e.primitives[Dt.TriStrips].getCABO().createVBO(i.getStrips(),"strips",o,y),e.VBOBuildTime.modified(),e.VBOBuildString=l}},t.renderPieceDraw=(r,a)=>{let i=a.getProperty().getRepresentation();e.context.depthMask(!0);for(let s=Dt.Start;s<Dt.End;s++)e.primitives[s].getCABO().getElementCount()&&(e.lastBoundBO=e.primitives[s],e.primitiveIDOffset+=e.primitives[s].drawArrays(r,a,i,t))},t.renderPieceFinish=(r,a)=>{e.lastBoundBO&&e.lastBoundBO.getVAO().release(),e.renderable.getColorTextureMap()&&e.internalColorTexture.deactivate()},t.replaceShaderValues=(r,a,i)=>{t.replaceShaderColor(r,a,i),t.replaceShaderTCoord(r,a,i),t.replaceShaderPicking(r,a,i),t.replaceShaderPositionVC(r,a,i)},t.replaceShaderColor=(r,a,i)=>{let s=r.Vertex,o=r.Geometry,c=r.Fragment,f=["uniform vec3 diffuseColorUniform;","uniform float opacityUniform;"],u=["vec3 diffuseColor = diffuseColorUniform;","float opacity = opacityUniform;"];e.lastBoundBO.getCABO().getColorComponents()!==0?(f=f.concat(["varying vec4 vertexColorVSOutput;"]),s=k.substitute(s,"//VTK::Color::Dec",["attribute vec4 scalarColor;","varying vec4 vertexColorVSOutput;"]).result,s=k.substitute(s,"//VTK::Color::Impl",["vertexColorVSOutput =  scalarColor;"]).result,o=k.substitute(o,"//VTK::Color::Dec",["in vec4 vertexColorVSOutput[];","out vec4 vertexColorGSOutput;"]).result,o=k.substitute(o,"//VTK::Color::Impl",["vertexColorGSOutput = vertexColorVSOutput[i];"]).result,c=k.substitute(c,"//VTK::Color::Impl",u.concat(["  diffuseColor = vertexColorVSOutput.rgb;","  opacity = opacity*vertexColorVSOutput.a;"])).result):e.renderable.getAreScalarsMappedFromCells()&&(u=u.concat(["  vec4 texColor = texture2D(texture1, tcoordVCVSOutput.st);","  diffuseColor = texColor.rgb;","  opacity = opacity*texColor.a;"])),u=u.concat(["gl_FragData[0] = vec4(diffuseColor, opacity);"]),c=k.substitute(c,"//VTK::Color::Dec",f).result,c=k.substitute(c,"//VTK::Color::Impl",u).result,r.Vertex=s,r.Geometry=o,r.Fragment=c},t.replaceShaderTCoord=(r,a,i)=>{if(e.lastBoundBO.getCABO().getTCoordOffset()){let s=r.Vertex,o=r.Geometry,c=r.Fragment,f=e.lastBoundBO.getCABO().getTCoordComponents();f===1?(s=k.substitute(s,"//VTK::TCoord::Dec",["in float tcoordMC;","out float tcoordVCVSOutput;"]).result,s=k.substitute(s,"//VTK::TCoord::Impl",["tcoordVCVSOutput = tcoordMC;"]).result,o=k.substitute(o,"//VTK::TCoord::Dec",[`in float tcoordVCVSOutput[];
`,"out float tcoordVCGSOutput;"]).result,o=k.substitute(o,["//VTK::TCoord::Impl","tcoordVCGSOutput = tcoordVCVSOutput[i];"]).result,c=k.substitute(c,"//VTK::TCoord::Dec",["in float tcoordVCVSOutput;","uniform sampler2D texture1;"]).result,c=k.substitute(c,"//VTK::TCoord::Impl",["gl_FragData[0] = gl_FragData[0]*texture2D(texture1, vec2(tcoordVCVSOutput,0));"]).result):f===2&&(s=k.substitute(s,"//VTK::TCoord::Dec",["in vec2 tcoordMC;","out vec2 tcoordVCVSOutput;"]).result,s=k.substitute(s,"//VTK::TCoord::Impl",["tcoordVCVSOutput = tcoordMC;"]).result,o=k.substitute(o,"//VTK::TCoord::Dec",[`in vec2 tcoordVCVSOutput[];
`,"out vec2 tcoordVCGSOutput;"]).result,o=k.substitute(o,"//VTK::TCoord::Impl",["tcoordVCGSOutput = tcoordVCVSOutput[i];"]).result,c=k.substitute(c,"//VTK::TCoord::Dec",["in vec2 tcoordVCVSOutput;","uniform sampler2D texture1;"]).result,c=k.substitute(c,"//VTK::TCoord::Impl",["gl_FragData[0] = gl_FragData[0]*texture2D(texture1, tcoordVCVSOutput.st);"]).result),e.renderable.getAreScalarsMappedFromCells()&&(o=k.substitute(o,"//VTK::PrimID::Impl",["gl_PrimitiveID = gl_PrimitiveIDIn;"]).result),r.Vertex=s,r.Geometry=o,r.Fragment=c}},t.replaceShaderPicking=(r,a,i)=>{let s=r.Fragment;s=k.substitute(s,"//VTK::Picking::Dec",["uniform vec3 mapperIndex;","uniform int picking;"]).result,s=k.substitute(s,"//VTK::Picking::Impl","  gl_FragData[0] = picking != 0 ? vec4(mapperIndex,1.0) : gl_FragData[0];").result,r.Fragment=s},t.replaceShaderPositionVC=(r,a,i)=>{e.lastBoundBO.replaceShaderPositionVC(r,a,i)},t.invokeShaderCallbacks=(r,a,i)=>{let s=e.renderable.getViewSpecificProperties().ShadersCallbacks;s&&s.forEach(o=>{o.callback(o.userData,r,a,i)})},t.setMapperShaderParameters=(r,a,i)=>{if(r.getProgram().isUniformUsed("PrimitiveIDOffset")&&r.getProgram().setUniformi("PrimitiveIDOffset",e.primitiveIDOffset),r.getProgram().isAttributeUsed("vertexWC")&&(r.getVAO().addAttributeArray(r.getProgram(),r.getCABO(),"vertexWC",r.getCABO().getVertexOffset(),r.getCABO().getStride(),e.context.FLOAT,3,!1)||pa("Error setting vertexWC in shader VAO.")),r.getCABO().getElementCount()&&(e.VBOBuildTime.getMTime()>r.getAttributeUpdateTime().getMTime()||r.getShaderSourceTime().getMTime()>r.getAttributeUpdateTime().getMTime())){e.renderable.getCustomShaderAttributes().forEach((c,f)=>{r.getProgram().isAttributeUsed(`${c}MC`)&&(r.getVAO().addAttributeArray(r.getProgram(),r.getCABO(),`${c}MC`,r.getCABO().getCustomData()[f].offset,r.getCABO().getStride(),e.context.FLOAT,r.getCABO().getCustomData()[f].components,!1)||pa(`Error setting ${c}MC in shader VAO.`))}),r.getProgram().isAttributeUsed("tcoordMC")&&r.getCABO().getTCoordOffset()?r.getVAO().addAttributeArray(r.getProgram(),r.getCABO(),"tcoordMC",r.getCABO().getTCoordOffset(),r.getCABO().getStride(),e.context.FLOAT,r.getCABO().getTCoordComponents(),!1)||pa("Error setting tcoordMC in shader VAO."):r.getVAO().removeAttributeArray("tcoordMC"),r.getProgram().isAttributeUsed("scalarColor")&&r.getCABO().getColorComponents()?r.getVAO().addAttributeArray(r.getProgram(),r.getCABO().getColorBO(),"scalarColor",r.getCABO().getColorOffset(),r.getCABO().getColorBOStride(),e.context.UNSIGNED_BYTE,4,!0)||pa("Error setting scalarColor in shader VAO."):r.getVAO().removeAttributeArray("scalarColor"),e.internalColorTexture&&r.getProgram().isUniformUsed("texture1")&&e.internalColorTexture.getTextureUnit()>-1&&r.getProgram().setUniformi("texture1",e.internalColorTexture.getTextureUnit());let s=e.openGLActor2D.getActiveTextures();if(s)for(let c=0;c<s.length;++c){let f=s[c].getTextureUnit(),u=`texture${f+1}`;r.getProgram().isUniformUsed(u)&&r.getProgram().setUniformi(u,f)}r.setMapperShaderParameters(a,i,e._openGLRenderer.getTiledSizeAndOrigin());let o=e._openGLRenderer.getSelector();r.getProgram().setUniform3fArray("mapperIndex",o?o.getPropColorValue():[0,0,0]),r.getProgram().setUniformi("picking",o?o.getCurrentPass()+1:0)}},t.setPropertyShaderParameters=(r,a,i)=>{let s=e.renderable.getColorMapColors();if(!s||s.getNumberOfComponents()===0){let o=r.getProgram(),c=i.getProperty(),f=c.getOpacity();o.setUniformf("opacityUniform",f);let u=c.getColor();o.setUniform3fArray("diffuseColorUniform",u)}},t.setLightingShaderParameters=(r,a,i)=>{};function n(r,a,i){return a.identity(i),r.reduce((s,o,c)=>c===0?o?a.copy(s,o):a.identity(s):o?a.multiply(s,s,o):s,i)}t.setCameraShaderParameters=(r,a,i)=>{let s=r.getProgram(),o=r.getCABO().getCoordShiftAndScaleEnabled()?r.getCABO().getInverseShiftAndScaleMatrix():null,c=a.getRenderWindow().getViews()[0].getViewportSize(a),f=a.getViewport(),u=i.getActualPositionCoordinate().getComputedDoubleViewportValue(a),g=[0,0,1,1],l=[0,0,1,1];if(l[0]=f[0]>=g[0]?f[0]:g[0],l[1]=f[1]>=g[1]?f[1]:g[1],l[2]=f[2]<=g[2]?f[2]:g[2],l[3]=f[3]<=g[3]?f[3]:g[3],l[0]>=l[2]||l[1]>=l[3])return;c[0]=lr(c[0]*(l[2]-l[0])/(f[2]-f[0])),c[1]=lr(c[1]*(l[3]-l[1])/(f[3]-f[1]));let h=e._openGLRenderer.getParent().getSize(),y=lr(u[0]-(l[0]-f[0])*h[0]),p=lr(u[1]-(l[1]-f[1])*h[1]),v=-y,x=-y+c[0],S=-p,T=-p+c[1];v===x&&(x=v+1),S===T&&(T=S+1);let d=F.identity(new Float64Array(16));d[0]=2/(x-v),d[5]=2/(T-S),d[3]=-1*(x+v)/(x-v),d[7]=-1*(T+S)/(T-S),d[10]=0,d[11]=i.getProperty().getDisplayLocation()===oh.FOREGROUND?-1:1,d[15]=1,F.transpose(d,d),s.setUniformMatrix("WCVCMatrix",n([d,o],F,e.tmpMat4))},t.getAllocatedGPUMemoryInBytes=()=>{let r=0;return e.primitives.forEach(a=>{r+=a.getAllocatedGPUMemoryInBytes()}),r},t.releaseGraphicsResources=r=>$i(t,e,r),t.delete=at(()=>t.releaseGraphicsResources(),t.delete)}var MO={context:null,VBOBuildTime:0,VBOBuildString:null,primitives:null,primTypes:null,shaderRebuildString:null};function EO(t,e,n={}){Object.assign(e,MO,n),ue.extend(t,e,n),nt.implementReplaceShaderCoincidentOffset(t,e,n),nt.implementBuildShadersWithReplacements(t,e,n),e.primitives=[],e.primTypes=Dt,e.tmpMat4=F.identity(new Float64Array(16));for(let r=Dt.Start;r<Dt.End;r++)e.primitives[r]=Ye.newInstance(),e.primitives[r].setPrimitiveType(r),e.primitives[r].set({lastLightComplexity:0,lastLightCount:0,lastSelectionPass:!1},!0);ie(t,e,["context"]),e.VBOBuildTime={},se(e.VBOBuildTime,{mtime:0}),RO(t,e)}var DO=J(EO,"vtkOpenGLPolyDataMapper2D");le("vtkMapper2D",DO);var{vtkDebugMacro:VO}=Ce;function LO(t,e){e.classHierarchy.push("vtkOpenGLRenderer"),t.buildPass=n=>{if(n){if(!e.renderable)return;e.renderable.updateLightGeometry(),t.updateLights(),t.prepareNodes(),t.addMissingNode(e.renderable.getActiveCamera()),t.addMissingNodes(e.renderable.getViewPropsWithNestedProps(),!0),t.removeUnusedNodes()}},t.updateLights=()=>{let n=0,r=e.renderable.getLightsByReference();for(let a=0;a<r.length;++a)r[a].getSwitch()>0&&n++;return n||(VO("No lights are on, creating one."),e.renderable.createLight()),n},t.zBufferPass=n=>{if(n){let r=0,a=e.context;e.renderable.getTransparent()||(e.context.clearColor(1,0,0,1),r|=a.COLOR_BUFFER_BIT),e.renderable.getPreserveDepthBuffer()||(a.clearDepth(1),r|=a.DEPTH_BUFFER_BIT,e.context.depthMask(!0));let i=t.getTiledSizeAndOrigin();a.enable(a.SCISSOR_TEST),a.scissor(i.lowerLeftU,i.lowerLeftV,i.usize,i.vsize),a.viewport(i.lowerLeftU,i.lowerLeftV,i.usize,i.vsize),a.colorMask(!0,!0,!0,!0),r&&a.clear(r),a.enable(a.DEPTH_TEST)}},t.opaqueZBufferPass=n=>t.zBufferPass(n),t.cameraPass=n=>{n&&t.clear()},t.getAspectRatio=()=>{let n=e._parent.getSizeByReference(),r=e.renderable.getViewportByReference();return n[0]*(r[2]-r[0])/((r[3]-r[1])*n[1])},t.getTiledSizeAndOrigin=()=>{let n=e.renderable.getViewportByReference(),r=[0,0,1,1],a=n[0]-r[0],i=n[1]-r[1],s=e._parent.normalizedDisplayToDisplay(a,i),o=Math.round(s[0]),c=Math.round(s[1]),f=n[2]-r[0],u=n[3]-r[1],g=e._parent.normalizedDisplayToDisplay(f,u),l=Math.round(g[0])-o,h=Math.round(g[1])-c;return l<0&&(l=0),h<0&&(h=0),{usize:l,vsize:h,lowerLeftU:o,lowerLeftV:c}},t.clear=()=>{let n=0,r=e.context;if(!e.renderable.getTransparent()){let i=e.renderable.getBackgroundByReference();r.clearColor(i[0],i[1],i[2],i[3]),n|=r.COLOR_BUFFER_BIT}e.renderable.getPreserveDepthBuffer()||(r.clearDepth(1),n|=r.DEPTH_BUFFER_BIT,r.depthMask(!0)),r.colorMask(!0,!0,!0,!0);let a=t.getTiledSizeAndOrigin();r.enable(r.SCISSOR_TEST),r.scissor(a.lowerLeftU,a.lowerLeftV,a.usize,a.vsize),r.viewport(a.lowerLeftU,a.lowerLeftV,a.usize,a.vsize),n&&r.clear(n),r.enable(r.DEPTH_TEST)},t.releaseGraphicsResources=()=>{e.selector!==null&&e.selector.releaseGraphicsResources(),e.renderable&&e.renderable.getViewProps().forEach(n=>{n.modified()})},t.setOpenGLRenderWindow=n=>{e._openGLRenderWindow!==n&&(t.releaseGraphicsResources(),e._openGLRenderWindow=n,e.context=null,n&&(e.context=e._openGLRenderWindow.getContext()))}}var _O={context:null,_openGLRenderWindow:null,selector:null};function FO(t,e,n={}){Object.assign(e,_O,n),ue.extend(t,e,n),Oe(t,e,["shaderCache"]),ie(t,e,["selector"]),sn(t,e,["openGLRenderWindow"]),LO(t,e)}var NO=J(FO,"vtkOpenGLRenderer");le("vtkRenderer",NO);var BO={HORIZONTAL:"horizontal",VERTICAL:"vertical",AUTO:"auto"},cc={Orientation:BO};var{VectorMode:GO}=Hn,{Orientation:qi}=cc;function fc(t,e,n){t.strokeStyle=e.strokeColor,t.lineWidth=e.strokeSize,t.fillStyle=e.fontColor;let r=e.fontSize??n;t.font=`${e.fontStyle} ${r}px ${e.fontFamily}`}function gh(t,e){return n=>{let r=n.getLastSize(),a=(r[0]/700)**.8,i=(r[1]/700)**.8,s=Math.min(a,i),o=n.getAxisTextStyle(),c=n.getTickTextStyle();Object.assign(o,e.axisTextStyle),Object.assign(c,e.tickTextStyle),o.fontSize===void 0&&(o.fontSize=Math.max(24*s,12)),c.fontSize===void 0&&(n.getLastAspectRatio()>1?c.fontSize=Math.max(20*s,10):c.fontSize=Math.max(16*s,10));let f=n.updateTextureAtlas();n.setTopTitle(!1);let u=n.getBoxSizeByReference(),g=!1;if(e.orientation===qi.VERTICAL?g=!0:e.orientation===qi.HORIZONTAL?g=!1:g=n.getLastAspectRatio()>1,g)n.setTickLabelPixelOffset(.3*c.fontSize),f.titleWidth<=f.tickWidth+n.getTickLabelPixelOffset()+.8*c.fontSize?(n.setTopTitle(!0),n.setAxisTitlePixelOffset(.2*c.fontSize),u[0]=2*(f.tickWidth+n.getTickLabelPixelOffset()+.8*c.fontSize)/r[0],n.setBoxPosition([.98-u[0],-.92])):(n.setAxisTitlePixelOffset(.2*c.fontSize),u[0]=2*(f.titleHeight+n.getAxisTitlePixelOffset()+f.tickWidth+n.getTickLabelPixelOffset()+.8*c.fontSize)/r[0],n.setBoxPosition([.99-u[0],-.92])),u[1]=Math.max(1.2,Math.min(1.84/i,1.84));else{n.setAxisTitlePixelOffset(1.2*c.fontSize),n.setTickLabelPixelOffset(.1*c.fontSize);let l=2*(.8*c.fontSize+f.titleHeight+n.getAxisTitlePixelOffset())/r[1],h=2*f.tickWidth/r[0];u[0]=Math.min(1.9,Math.max(1.4,1.4*h*(n.getTicks().length+3))),u[1]=l,n.setBoxPosition([-.5*u[0],-.97])}n.recomputeBarSegments(f)}}function ph(t,e){return n=>{let r=n.getLastTickBounds(),a=Yn().domain([r[0],r[1]]),i=a.ticks(5),s=a.tickFormat(5);n.setTicks(i),n.setTickStrings(i.map(s))}}function UO(t,e){e.classHierarchy.push("vtkScalarBarActorHelper"),t.setRenderable=a=>{e.renderable!==a&&(e.renderable=a,e.barActor.setProperty(a.getProperty()),e.barActor.setParentProp(a),e.barActor.setCoordinateSystemToDisplay(),e.tmActor.setProperty(a.getProperty()),e.tmActor.setParentProp(a),e.tmActor.setCoordinateSystemToDisplay(),e.generateTicks=a.generateTicks,e.axisTextStyle={...a.getAxisTextStyle()},e.tickTextStyle={...a.getTickTextStyle()},t.modified())},t.updateAPISpecificData=(a,i,s)=>{(e.lastSize[0]!==a[0]||e.lastSize[1]!==a[1])&&(e.lastSize[0]=a[0],e.lastSize[1]=a[1],e.lastAspectRatio=a[0]/a[1],e.forceUpdate=!0);let o=e.renderable.getScalarsToColors();if(!(!o||!e.renderable.getVisibility())&&(e.barMapper.setLookupTable(o),e.camera=i,e.renderWindow=s,e.forceUpdate||Math.max(o.getMTime(),t.getMTime(),e.renderable.getMTime())>e.lastRebuildTime.getMTime())){if(e.lastTickBounds=[...o.getMappingRange()],e.renderable.getGenerateTicks()(t),e.renderable.getAutomated())e.renderable.getAutoLayout()(t);else{e.axisTextStyle={...e.renderable.getAxisTextStyle()},e.tickTextStyle={...e.renderable.getTickTextStyle()},e.barPosition=[...e.renderable.getBarPosition()],e.barSize=[...e.renderable.getBarSize()],e.boxPosition=[...e.renderable.getBoxPosition()],e.boxSize=[...e.renderable.getBoxSize()],e.axisTitlePixelOffset=e.renderable.getAxisTitlePixelOffset(),e.tickLabelPixelOffset=e.renderable.getTickLabelPixelOffset();let c=t.updateTextureAtlas();t.recomputeBarSegments(c)}t.updatePolyDataForLabels(),t.updatePolyDataForBarSegments(),e.lastRebuildTime.modified(),e.forceUpdate=!1}},t.updateTextureAtlas=()=>{e.tmContext.textBaseline="bottom",e.tmContext.textAlign="left";let a={},i=new Map,s=0,o=1;fc(e.tmContext,e.axisTextStyle,18);let c=e.tmContext.measureText(e.renderable.getAxisLabel()),f={height:c.actualBoundingBoxAscent+2,startingHeight:o,width:c.width+2,textStyle:e.axisTextStyle};i.set(e.renderable.getAxisLabel(),f),o+=f.height,s=f.width,a.titleWidth=f.width,a.titleHeight=f.height,a.tickWidth=0,a.tickHeight=0,fc(e.tmContext,e.tickTextStyle,14);let u=[...t.getTickStrings(),"NaN","Below","Above"];for(let g=0;g<u.length;g++)i.has(u[g])||(c=e.tmContext.measureText(u[g]),f={height:c.actualBoundingBoxAscent+2,startingHeight:o,width:c.width+2,textStyle:e.tickTextStyle},i.set(u[g],f),o+=f.height,s<f.width&&(s=f.width),a.tickWidth<f.width&&(a.tickWidth=f.width),a.tickHeight<f.height&&(a.tickHeight=f.height));return s=Rt(s),o=Rt(o),i.forEach(g=>{g.tcoords=[0,(o-g.startingHeight-g.height)/o,g.width/s,(o-g.startingHeight-g.height)/o,g.width/s,(o-g.startingHeight)/o,0,(o-g.startingHeight)/o]}),e.tmCanvas.width=s,e.tmCanvas.height=o,e.tmContext.textBaseline="bottom",e.tmContext.textAlign="left",e.tmContext.clearRect(0,0,s,o),i.forEach((g,l)=>{let h=g.textStyle===e.axisTextStyle?18:14;fc(e.tmContext,g.textStyle,h),e.tmContext.fillText(l,1,g.startingHeight+g.height-1)}),e.tmTexture.setCanvas(e.tmCanvas),e.tmTexture.modified(),e._tmAtlas=i,a},t.computeBarSize=a=>{e.vertical=e.boxSize[1]>e.boxSize[0];let i=2*a.tickHeight/e.lastSize[1],s=[1,1];if(e.vertical){let o=2*(a.tickWidth+e.tickLabelPixelOffset)/e.lastSize[0];if(e.topTitle){let c=2*(a.titleHeight+e.axisTitlePixelOffset)/e.lastSize[1];e.barSize[0]=e.boxSize[0]-o,e.barSize[1]=e.boxSize[1]-c}else{let c=2*(a.titleHeight+e.axisTitlePixelOffset)/e.lastSize[0];e.barSize[0]=e.boxSize[0]-c-o,e.barSize[1]=e.boxSize[1]}e.barPosition[0]=e.boxPosition[0]+o,e.barPosition[1]=e.boxPosition[1],s[1]=i}else{let o=(2*a.tickWidth-8)/e.lastSize[0],c=2*(a.titleHeight+e.axisTitlePixelOffset)/e.lastSize[1];e.barSize[0]=e.boxSize[0],e.barPosition[0]=e.boxPosition[0],e.barSize[1]=e.boxSize[1]-c,e.barPosition[1]=e.boxPosition[1],s[0]=o}return s},t.recomputeBarSegments=a=>{let i=t.computeBarSize(a);e.barSegments=[];let s=[0,0],o=e.vertical?1:0,c=e.vertical?.01:.02;function f(l,h){e.barSegments.push({corners:[[...s],[s[0]+i[0],s[1]],[s[0]+i[0],s[1]+i[1]],[s[0],s[1]+i[1]]],scalars:h,title:l}),s[o]+=i[o]+c}e.renderable.getDrawNanAnnotation()&&e.renderable.getScalarsToColors().getNanColor()&&f("NaN",[NaN,NaN,NaN,NaN]),e.renderable.getDrawBelowRangeSwatch()&&e.renderable.getScalarsToColors().getUseBelowRangeColor?.()&&f("Below",[-.1,-.1,-.1,-.1]);let u=e.renderable.getScalarsToColors().getUseAboveRangeColor?.();s[o]+=c;let g=i[o];i[o]=u?1-2*c-i[o]-s[o]:1-c-s[o],f("ticks",e.vertical?[0,0,.995,.995]:[0,.995,.995,0]),e.renderable.getDrawAboveRangeSwatch()&&u&&(i[o]=g,s[o]+=c,f("Above",[1.1,1.1,1.1,1.1]))};let n=new Float64Array(3);t.createPolyDataForOneLabel=(a,i,s,o,c,f)=>{let u=e._tmAtlas.get(a);if(!u)return;let g=f.ptIdx,l=f.cellIdx;n[0]=(.5*i[0]+.5)*e.lastSize[0],n[1]=(.5*i[1]+.5)*e.lastSize[1],n[2]=i[2],n[0]+=c[0],n[1]+=c[1];let h=[],y=o==="vertical"?[1,0]:[0,1];o==="vertical"?(h[0]=u.width,h[1]=-u.height,s[0]==="middle"?n[1]-=u.width/2:s[0]==="right"&&(n[1]-=u.width),s[1]==="middle"?n[0]+=u.height/2:s[1]==="top"&&(n[0]+=u.height)):(h[0]=u.width,h[1]=u.height,s[0]==="middle"?n[0]-=u.width/2:s[0]==="right"&&(n[0]-=u.width),s[1]==="middle"?n[1]-=u.height/2:s[1]==="top"&&(n[1]-=u.height)),f.points[g*3]=n[0],f.points[g*3+1]=n[1],f.points[g*3+2]=n[2],f.tcoords[g*2]=u.tcoords[0],f.tcoords[g*2+1]=u.tcoords[1],g++,n[y[0]]+=h[0],f.points[g*3]=n[0],f.points[g*3+1]=n[1],f.points[g*3+2]=n[2],f.tcoords[g*2]=u.tcoords[2],f.tcoords[g*2+1]=u.tcoords[3],g++,n[y[1]]+=h[1],f.points[g*3]=n[0],f.points[g*3+1]=n[1],f.points[g*3+2]=n[2],f.tcoords[g*2]=u.tcoords[4],f.tcoords[g*2+1]=u.tcoords[5],g++,n[y[0]]-=h[0],f.points[g*3]=n[0],f.points[g*3+1]=n[1],f.points[g*3+2]=n[2],f.tcoords[g*2]=u.tcoords[6],f.tcoords[g*2+1]=u.tcoords[7],g++,f.polys[l*4]=3,f.polys[l*4+1]=g-4,f.polys[l*4+2]=g-3,f.polys[l*4+3]=g-2,l++,f.polys[l*4]=3,f.polys[l*4+1]=g-4,f.polys[l*4+2]=g-2,f.polys[l*4+3]=g-1,f.ptIdx+=4,f.cellIdx+=2};let r=new Float64Array(3);t.updatePolyDataForLabels=()=>{let a=t.getTickStrings().length+e.barSegments.length,i=a*4,s=a*2,o=new Float64Array(i*3),c=new Uint16Array(s*4),f=new Float32Array(i*2),u={ptIdx:0,cellIdx:0,polys:c,points:o,tcoords:f},g=e.vertical?0:1,l=e.vertical?1:0;r[2]=-.99;let h=e.vertical?["right","middle"]:["middle","bottom"],y=[0,1],p=[0,0];e.vertical?(p[0]=-e.tickLabelPixelOffset,e.topTitle?(r[0]=e.boxPosition[0]+.5*e.boxSize[0],r[1]=e.barPosition[1]+e.barSize[1],t.createPolyDataForOneLabel(e.renderable.getAxisLabel(),r,["middle","bottom"],"horizontal",[0,e.axisTitlePixelOffset],u)):(r[0]=e.barPosition[0]+e.barSize[0],r[1]=e.barPosition[1]+.5*e.barSize[1],t.createPolyDataForOneLabel(e.renderable.getAxisLabel(),r,["middle","top"],"vertical",[e.axisTitlePixelOffset,0],u)),y=[-1,0]):(p[1]=e.tickLabelPixelOffset,r[0]=e.barPosition[0]+.5*e.barSize[0],r[1]=e.barPosition[1]+e.barSize[1],t.createPolyDataForOneLabel(e.renderable.getAxisLabel(),r,["middle","bottom"],"horizontal",[0,e.axisTitlePixelOffset],u)),r[g]=e.barPosition[g]+(.5*y[g]+.5)*e.barSize[g],r[l]=e.barPosition[l]+e.barSize[l]*.5;let v=null;for(let D=0;D<e.barSegments.length;D++){let m=e.barSegments[D];m.title==="ticks"?v=m:(r[l]=e.barPosition[l]+.5*e.barSize[l]*(m.corners[2][l]+m.corners[0][l]),t.createPolyDataForOneLabel(m.title,r,h,"horizontal",p,u))}let x=e.barPosition[l]+e.barSize[l]*v.corners[0][l],S=e.barSize[l]*(v.corners[2][l]-v.corners[0][l]),T=t.getTicks(),d=t.getTickStrings(),C=t.getTickPositions();for(let D=0;D<T.length;D++)r[l]=x+S*(C?C[D]:(T[D]-e.lastTickBounds[0])/(e.lastTickBounds[1]-e.lastTickBounds[0])),t.createPolyDataForOneLabel(d[D],r,h,"horizontal",p,u);let w=Y.newInstance({numberOfComponents:2,values:f,name:"TextureCoordinates"});e.tmPolyData.getPointData().setTCoords(w),e.tmPolyData.getPoints().setData(o,3),e.tmPolyData.getPoints().modified(),e.tmPolyData.getPolys().setData(c,1),e.tmPolyData.getPolys().modified(),e.tmPolyData.modified()},t.updatePolyDataForBarSegments=()=>{let a=e.renderable.getScalarsToColors(),i=0;e.renderable.getDrawNanAnnotation()&&a.getNanColor()&&(i+=1),e.renderable.getDrawBelowRangeSwatch()&&a.getUseBelowRangeColor?.()&&(i+=1),e.renderable.getDrawAboveRangeSwatch()&&a.getUseAboveRangeColor?.()&&(i+=1);let s=4*(1+i),o=s,c=1;a.getVectorMode()===GO.COMPONENT&&(c=a.getVectorComponent()+1);let f=new Float64Array(s*3),u=new Uint16Array(o*5),g=new Float32Array(s*c),l=0,h=0;for(let p=0;p<e.barSegments.length;p++){let v=e.barSegments[p];for(let x=0;x<4;x++){r[0]=e.barPosition[0]+v.corners[x][0]*e.barSize[0],r[1]=e.barPosition[1]+v.corners[x][1]*e.barSize[1],f[l*3]=(.5*r[0]+.5)*e.lastSize[0],f[l*3+1]=(.5*r[1]+.5)*e.lastSize[1],f[l*3+2]=r[2];for(let S=0;S<c;S++)g[l*c+S]=e.lastTickBounds[0]+v.scalars[x]*(e.lastTickBounds[1]-e.lastTickBounds[0]);l++}u[h*5]=4,u[h*5+1]=l-4,u[h*5+2]=l-3,u[h*5+3]=l-2,u[h*5+4]=l-1,h++}let y=Y.newInstance({numberOfComponents:c,values:g,name:"Scalars"});e.polyData.getPointData().setScalars(y),e.polyData.getPoints().setData(f,3),e.polyData.getPoints().modified(),e.polyData.getPolys().setData(u,1),e.polyData.getPolys().modified(),e.polyData.modified()}}var kO=O.newInstance((t,e,n={renderable:null})=>{Object.assign(e,{},n),O.obj(t,e),O.setGet(t,e,["axisTitlePixelOffset","tickLabelPixelOffset","renderable","topTitle","ticks","tickStrings","tickPositions"]),O.get(t,e,["lastSize","lastAspectRatio","lastTickBounds","axisTextStyle","tickTextStyle","barActor","tmActor"]),O.getArray(t,e,["boxPosition","boxSize"]),O.setArray(t,e,["boxPosition","boxSize"],2),e.forceUpdate=!1,e.lastRebuildTime={},O.obj(e.lastRebuildTime,{mtime:0}),e.lastSize=[-1,-1],e.tmCanvas=document.createElement("canvas"),e.tmContext=e.tmCanvas.getContext("2d"),e._tmAtlas=new Map,e.barMapper=hn.newInstance(),e.barMapper.setInterpolateScalarsBeforeMapping(!0),e.barMapper.setUseLookupTableScalarRange(!0),e.polyData=We.newInstance(),e.barMapper.setInputData(e.polyData),e.barActor=gn.newInstance(),e.barActor.setMapper(e.barMapper),e.tmPolyData=We.newInstance(),e.tmMapper=hn.newInstance(),e.tmMapper.setInputData(e.tmPolyData),e.tmTexture=vn.newInstance({resizable:!0}),e.tmTexture.setInterpolate(!1),e.tmActor=gn.newInstance({parentProp:t}),e.tmActor.setMapper(e.tmMapper),e.tmActor.addTexture(e.tmTexture),e.barPosition=[0,0],e.barSize=[0,0],e.boxPosition=[.88,-.92],e.boxSize=[.1,1.1],e.lastTickBounds=[],UO(t,e)},"vtkScalarBarActorHelper");function bO(t,e){e.classHierarchy.push("vtkScalarBarActor"),t.setTickTextStyle=n=>{e.tickTextStyle={...e.tickTextStyle,...n},t.modified()},t.setAxisTextStyle=n=>{e.axisTextStyle={...e.axisTextStyle,...n},t.modified()},t.setOrientationToHorizontal=()=>t.setOrientation(qi.HORIZONTAL),t.setOrientationToVertical=()=>t.setOrientation(qi.VERTICAL),t.resetAutoLayoutToDefault=()=>{t.setAutoLayout(gh(t,e))},t.resetGenerateTicksToDefault=()=>{t.setGenerateTicks(ph(t,e))}}function zO(t){return{automated:!0,autoLayout:null,axisLabel:"Scalar Value",barPosition:[0,0],barSize:[0,0],boxPosition:[.88,-.92],boxSize:[.1,1.1],scalarToColors:null,axisTitlePixelOffset:36,axisTextStyle:{fontColor:"white",fontStyle:"normal",fontSize:void 0,fontFamily:"serif"},tickLabelPixelOffset:14,tickTextStyle:{fontColor:"white",fontStyle:"normal",fontSize:void 0,fontFamily:"serif"},generateTicks:null,drawNanAnnotation:!0,drawBelowRangeSwatch:!0,drawAboveRangeSwatch:!0,orientation:null,...t}}function hh(t,e,n={}){Object.assign(e,zO(n)),e.autoLayout||(e.autoLayout=gh(t,e)),e.generateTicks||(e.generateTicks=ph(t,e)),gn.extend(t,e,n),t.getProperty().setDiffuse(0),t.getProperty().setAmbient(1),O.setGet(t,e,["automated","autoLayout","axisTitlePixelOffset","axisLabel","scalarsToColors","tickLabelPixelOffset","generateTicks","drawNanAnnotation","drawBelowRangeSwatch","drawAboveRangeSwatch","orientation"]),O.get(t,e,["axisTextStyle","tickTextStyle"]),O.getArray(t,e,["barPosition","barSize","boxPosition","boxSize"]),O.setArray(t,e,["barPosition","barSize","boxPosition","boxSize"],2),bO(t,e)}var WO=O.newInstance(hh,"vtkScalarBarActor"),vh={newInstance:WO,extend:hh,newScalarBarActorHelper:kO,...cc};function AO(t,e){e.classHierarchy.push("vtkOpenGLScalarBarActor"),t.buildPass=n=>{n&&(e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e._openGLRenderWindow=e._openGLRenderer.getParent(),e.scalarBarActorHelper.getRenderable()||e.scalarBarActorHelper.setRenderable(e.renderable),t.prepareNodes(),t.addMissingNode(e.scalarBarActorHelper.getBarActor()),t.addMissingNode(e.scalarBarActorHelper.getTmActor()),t.removeUnusedNodes())},t.opaquePass=(n,r)=>{if(n){let a=e._openGLRenderer?e._openGLRenderer.getRenderable().getActiveCamera():null,i=e._openGLRenderer.getTiledSizeAndOrigin();e.scalarBarActorHelper.updateAPISpecificData([i.usize,i.vsize],a,e._openGLRenderWindow.getRenderable())}}}var PO={};function HO(t,e,n={}){Object.assign(e,PO,n),ue.extend(t,e,n),e.scalarBarActorHelper=vh.newScalarBarActorHelper(),AO(t,e)}var IO=J(HO,"vtkOpenGLScalarBarActor");le("vtkScalarBarActor",IO);var{vtkErrorMacro:dh}=Ce;function jO(t,e){e.classHierarchy.push("vtkOpenGLSkybox"),t.buildPass=n=>{if(n){e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e._openGLRenderWindow=e._openGLRenderer.getParent(),e.context=e._openGLRenderWindow.getContext(),e.tris.setOpenGLRenderWindow(e._openGLRenderWindow),e.openGLTexture.setOpenGLRenderWindow(e._openGLRenderWindow);let r=e._openGLRenderer.getRenderable();e.openGLCamera=e._openGLRenderer.getViewNodeFor(r.getActiveCamera(),e.openGLCamera)}},t.queryPass=(n,r)=>{if(n){if(!e.renderable||!e.renderable.getVisibility())return;r.incrementOpaqueActorCount()}},t.opaquePass=(n,r)=>{if(n&&!e._openGLRenderer.getSelector()){t.updateBufferObjects(),e.context.depthMask(!0),e._openGLRenderWindow.getShaderCache().readyShaderProgram(e.tris.getProgram()),e.openGLTexture.render(e._openGLRenderWindow);let a=e.openGLTexture.getTextureUnit();e.tris.getProgram().setUniformi("sbtexture",a);let i=e._openGLRenderer.getRenderable(),s=e.openGLCamera.getKeyMatrices(i),o=new Float64Array(16);if(F.invert(o,s.wcpc),e.tris.getProgram().setUniformMatrix("IMCPCMatrix",o),e.lastFormat==="box"){let c=i.getActiveCamera().getPosition();e.tris.getProgram().setUniform3f("camPos",c[0],c[1],c[2])}e.tris.getVAO().bind(),e.context.drawArrays(e.context.TRIANGLES,0,e.tris.getCABO().getElementCount()),e.tris.getVAO().release(),e.openGLTexture.deactivate()}},t.updateBufferObjects=()=>{if(!e.tris.getCABO().getElementCount()){let r=new Float32Array(12);for(let o=0;o<4;o++)r[o*3]=o%2*2-1,r[o*3+1]=o>1?1:-1,r[o*3+2]=1;let a=Y.newInstance({numberOfComponents:3,values:r});a.setName("points");let i=new Uint16Array(8);i[0]=3,i[1]=0,i[2]=1,i[3]=3,i[4]=3,i[5]=0,i[6]=3,i[7]=2;let s=be.newInstance({values:i});e.tris.getCABO().createVBO(s,"polys",Ke.SURFACE,{points:a,cellOffset:0,forceFlatten:!0})}e.renderable.getFormat()!==e.lastFormat&&(e.lastFormat=e.renderable.getFormat(),e.lastFormat==="box"&&e.tris.setProgram(e._openGLRenderWindow.getShaderCache().readyShaderProgramArray(`//VTK::System::Dec
             attribute vec3 vertexMC;
             uniform mat4 IMCPCMatrix;
             varying vec3 TexCoords;
             void main () {
              gl_Position = vec4(vertexMC.xyz, 1.0);
              vec4 wpos = IMCPCMatrix * gl_Position;
              TexCoords = wpos.xyz/wpos.w;
             }`,`//VTK::System::Dec
             //VTK::Output::Dec
             varying vec3 TexCoords;
             uniform samplerCube sbtexture;
             uniform vec3 camPos;
             void main () {
               // skybox looks from inside out
               // which means we have to adjust
               // our tcoords. Otherwise text would
               // be flipped
               vec3 tc = normalize(TexCoords - camPos);
               if (abs(tc.z) < max(abs(tc.x),abs(tc.y)))
               {
                 tc = vec3(1.0, 1.0, -1.0) * tc;
               }
               else
               {
                 tc = vec3(-1.0, 1.0, 1.0) * tc;
               }
               gl_FragData[0] = textureCube(sbtexture, tc);
             }`,"")),e.lastFormat==="background"&&e.tris.setProgram(e._openGLRenderWindow.getShaderCache().readyShaderProgramArray(`//VTK::System::Dec
             attribute vec3 vertexMC;
             uniform mat4 IMCPCMatrix;
             varying vec2 TexCoords;
             void main () {
              gl_Position = vec4(vertexMC.xyz, 1.0);
              vec4 wpos = IMCPCMatrix * gl_Position;
              TexCoords = vec2(vertexMC.x, vertexMC.y)*0.5 + 0.5;
             }`,`//VTK::System::Dec
             //VTK::Output::Dec
             varying vec2 TexCoords;
             uniform sampler2D sbtexture;
             void main () {
               gl_FragData[0] = texture2D(sbtexture, TexCoords);
             }`,"")),e.tris.getShaderSourceTime().modified(),e.tris.getVAO().bind(),e.tris.getVAO().addAttributeArray(e.tris.getProgram(),e.tris.getCABO(),"vertexMC",e.tris.getCABO().getVertexOffset(),e.tris.getCABO().getStride(),e.context.FLOAT,3,e.context.FALSE)||dh("Error setting vertexMC in shader VAO."));let n=e.renderable.getTextures();n.length||dh("vtkSkybox requires a texture map"),e.openGLTexture.getRenderable()!==n[0]&&(e.openGLTexture.releaseGraphicsResources(e._openGLRenderWindow),e.openGLTexture.setRenderable(n[0]))}}var $O={context:null};function KO(t,e,n={}){Object.assign(e,$O,n),ue.extend(t,e,n),e.openGLTexture=de.newInstance(),e.tris=Ye.newInstance(),e.keyMatrixTime={},se(e.keyMatrixTime,{mtime:0}),e.keyMatrices={normalMatrix:K.identity(new Float64Array(9)),mcwc:F.identity(new Float64Array(16))},ie(t,e,["context"]),Oe(t,e,["activeTextures"]),jO(t,e)}var XO=J(KO);le("vtkSkybox",XO);var YO={NONE:-1,I:0,J:1,K:2,X:3,Y:4,Z:5},Th={SlicingMode:YO};var tn={NEAREST:0,LINEAR:1};function xt(t,e,n){return t.length>0?`${t.map(r=>r?.getMTime()??"x").join("/")}-${e}-${n}`:"0"}function Lr(t,e){return`${e.getMTime()}`}var{vtkErrorMacro:_r}=Ce,{SlicingMode:vt}=Th;function qO(t){let e=t.split(`
`),n=[];for(let r=0;r<e.length;++r){let a=e[r].trim();a.length>0&&n.push(a)}return n}function ZO(t,e){e.classHierarchy.push("vtkOpenGLImageMapper");function n(r){e.openGLTexture.releaseGraphicsResources(r),[e._colorTransferFunc,e._pwFunc,e._labelOutlineThicknessArray,e._labelOutlineOpacity].forEach(a=>r.unregisterGraphicsResourceUser(a,t))}t.buildPass=r=>{if(r){e.currentRenderPass=null,e.openGLImageSlice=t.getFirstAncestorOfType("vtkOpenGLImageSlice"),e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer");let a=e._openGLRenderWindow;e._openGLRenderWindow=e._openGLRenderer.getLastAncestorOfType("vtkOpenGLRenderWindow"),a&&!a.isDeleted()&&a!==e._openGLRenderWindow&&n(a),e.context=e._openGLRenderWindow.getContext(),e.tris.setOpenGLRenderWindow(e._openGLRenderWindow);let i=e._openGLRenderer.getRenderable();e.openGLCamera=e._openGLRenderer.getViewNodeFor(i.getActiveCamera(),e.openGLCamera),e.renderable.isA("vtkImageMapper")&&e.renderable.getSliceAtFocalPoint()&&e.renderable.setSliceFromCamera(i.getActiveCamera())}},t.translucentPass=(r,a)=>{r&&(e.currentRenderPass=a,t.render())},t.zBufferPass=r=>{r&&(e.haveSeenDepthRequest=!0,e.renderDepth=!0,t.render(),e.renderDepth=!1)},t.opaqueZBufferPass=r=>t.zBufferPass(r),t.opaquePass=r=>{r&&t.render()},t.getCoincidentParameters=(r,a)=>e.renderable.getResolveCoincidentTopology()==tt.PolygonOffset?e.renderable.getCoincidentTopologyPolygonOffsetParameters():null,t.render=()=>{let r=e.openGLImageSlice.getRenderable(),a=e._openGLRenderer.getRenderable();t.renderPiece(a,r)},t.getShaderTemplate=(r,a,i)=>{r.Vertex=Dr,r.Fragment=Vr,r.Geometry=""},t.replaceShaderValues=(r,a,i)=>{let s=r.Vertex,o=r.Fragment;s=k.substitute(s,"//VTK::Camera::Dec",["uniform mat4 MCPCMatrix;"]).result,s=k.substitute(s,"//VTK::PositionVC::Impl",["  gl_Position = MCPCMatrix * vertexMC;"]).result,s=k.substitute(s,"//VTK::TCoord::Impl","tcoordVCVSOutput = tcoordMC;").result,s=k.substitute(s,"//VTK::TCoord::Dec","attribute vec2 tcoordMC; varying vec2 tcoordVCVSOutput;").result;let c=e.openGLTexture.getComponents(),f=i.getProperty().getIndependentComponents(),u=["varying vec2 tcoordVCVSOutput;","uniform float cshift0;","uniform float cscale0;","uniform float pwfshift0;","uniform float pwfscale0;","uniform sampler2D texture1;","uniform sampler2D colorTexture1;","uniform sampler2D pwfTexture1;","uniform float opacity;"];if(i.getProperty().getUseLabelOutline()&&(u=u.concat(["uniform sampler2D labelOutlineTexture1;","uniform sampler2D labelOutlineOpacityTexture1;"])),f){for(let g=1;g<c;g++)u=u.concat([`uniform float cshift${g};`,`uniform float cscale${g};`,`uniform float pwfshift${g};`,`uniform float pwfscale${g};`]);switch(c){case 1:u=u.concat(["uniform float mix0;","#define height0 0.5"]);break;case 2:u=u.concat(["uniform float mix0;","uniform float mix1;","#define height0 0.25","#define height1 0.75"]);break;case 3:u=u.concat(["uniform float mix0;","uniform float mix1;","uniform float mix2;","#define height0 0.17","#define height1 0.5","#define height2 0.83"]);break;case 4:u=u.concat(["uniform float mix0;","uniform float mix1;","uniform float mix2;","uniform float mix3;","#define height0 0.125","#define height1 0.375","#define height2 0.625","#define height3 0.875"]);break;default:_r("Unsupported number of independent coordinates.")}}if(o=k.substitute(o,"//VTK::TCoord::Dec",u).result,i.getProperty().getUseLabelOutline()===!0&&(o=k.substitute(o,"//VTK::LabelOutline::Dec",["uniform float vpWidth;","uniform float vpHeight;","uniform float vpOffsetX;","uniform float vpOffsetY;","uniform mat4 PCWCMatrix;","uniform mat4 vWCtoIDX;","uniform ivec3 imageDimensions;","uniform int sliceAxis;"]).result,o=k.substitute(o,"//VTK::ImageLabelOutlineOn","#define vtkImageLabelOutlineOn").result,o=k.substitute(o,"//VTK::LabelOutlineHelperFunction",["#ifdef vtkImageLabelOutlineOn","vec3 fragCoordToIndexSpace(vec4 fragCoord) {","  vec4 pcPos = vec4(","    (fragCoord.x / vpWidth - vpOffsetX - 0.5) * 2.0,","    (fragCoord.y / vpHeight - vpOffsetY - 0.5) * 2.0,","    (fragCoord.z - 0.5) * 2.0,","    1.0);","","  vec4 worldCoord = PCWCMatrix * pcPos;","  vec4 vertex = (worldCoord/worldCoord.w);","","  vec3 index = (vWCtoIDX * vertex).xyz;","","  // half voxel fix for labelmapOutline","  return (index + vec3(0.5)) / vec3(imageDimensions);","}","vec2 getSliceCoords(vec3 coord, int axis) {","  if (axis == 0) return coord.yz;","  if (axis == 1) return coord.xz;","  if (axis == 2) return coord.xy;","}","#endif"]).result),f){let g=["r","g","b","a"],l=["vec4 tvalue = texture2D(texture1, tcoordVCVSOutput);"];for(let h=0;h<c;h++)l=l.concat([`vec3 tcolor${h} = mix${h} * texture2D(colorTexture1, vec2(tvalue.${g[h]} * cscale${h} + cshift${h}, height${h})).rgb;`,`float compWeight${h} = mix${h} * texture2D(pwfTexture1, vec2(tvalue.${g[h]} * pwfscale${h} + pwfshift${h}, height${h})).r;`]);switch(c){case 1:l=l.concat(["gl_FragData[0] = vec4(tcolor0.rgb, opacity);"]);break;case 2:l=l.concat(["float weightSum = compWeight0 + compWeight1;","gl_FragData[0] = vec4(vec3((tcolor0.rgb * (compWeight0 / weightSum)) + (tcolor1.rgb * (compWeight1 / weightSum))), opacity);"]);break;case 3:l=l.concat(["float weightSum = compWeight0 + compWeight1 + compWeight2;","gl_FragData[0] = vec4(vec3((tcolor0.rgb * (compWeight0 / weightSum)) + (tcolor1.rgb * (compWeight1 / weightSum)) + (tcolor2.rgb * (compWeight2 / weightSum))), opacity);"]);break;case 4:l=l.concat(["float weightSum = compWeight0 + compWeight1 + compWeight2 + compWeight3;","gl_FragData[0] = vec4(vec3((tcolor0.rgb * (compWeight0 / weightSum)) + (tcolor1.rgb * (compWeight1 / weightSum)) + (tcolor2.rgb * (compWeight2 / weightSum)) + (tcolor3.rgb * (compWeight3 / weightSum))), opacity);"]);break;default:_r("Unsupported number of independent coordinates.")}o=k.substitute(o,"//VTK::TCoord::Impl",l).result}else switch(c){case 1:o=k.substitute(o,"//VTK::TCoord::Impl",[...qO(`
                #ifdef vtkImageLabelOutlineOn
                  vec3 centerPosIS = fragCoordToIndexSpace(gl_FragCoord);
                  float centerValue = texture2D(texture1, getSliceCoords(centerPosIS, sliceAxis)).r;
                  bool pixelOnBorder = false;
                  vec3 tColor = texture2D(colorTexture1, vec2(centerValue * cscale0 + cshift0, 0.5)).rgb;
                  float scalarOpacity = texture2D(pwfTexture1, vec2(centerValue * pwfscale0 + pwfshift0, 0.5)).r;
                  float opacityToUse = scalarOpacity * opacity;
                  int segmentIndex = int(centerValue * 255.0);
                  float textureCoordinate = float(segmentIndex - 1) / 1024.0;
                  float textureValue = texture2D(labelOutlineTexture1, vec2(textureCoordinate, 0.5)).r;
                  float outlineOpacity = texture2D(labelOutlineOpacityTexture1, vec2(textureCoordinate, 0.5)).r;
                  int actualThickness = int(textureValue * 255.0);

                  if (segmentIndex == 0){
                    gl_FragData[0] = vec4(0.0, 0.0, 0.0, 0.0);
                    return;
                  }

                  for (int i = -actualThickness; i <= actualThickness; i++) {
                    for (int j = -actualThickness; j <= actualThickness; j++) {
                      if (i == 0 && j == 0) {
                        continue;
                      }
                      vec4 neighborPixelCoord = vec4(gl_FragCoord.x + float(i),
                        gl_FragCoord.y + float(j),
                        gl_FragCoord.z, gl_FragCoord.w);
                      vec3 neighborPosIS = fragCoordToIndexSpace(neighborPixelCoord);
                      float value = texture2D(texture1, getSliceCoords(neighborPosIS, sliceAxis)).r;
                      if (value != centerValue) {
                        pixelOnBorder = true;
                        break;
                      }
                    }
                    if (pixelOnBorder == true) {
                      break;
                    }
                  }
                  if (pixelOnBorder == true) {
                    gl_FragData[0] = vec4(tColor, outlineOpacity);
                  }
                  else {
                    gl_FragData[0] = vec4(tColor, opacityToUse);
                  }
                #else
                  float intensity = texture2D(texture1, tcoordVCVSOutput).r;
                  vec3 tcolor = texture2D(colorTexture1, vec2(intensity * cscale0 + cshift0, 0.5)).rgb;
                  float scalarOpacity = texture2D(pwfTexture1, vec2(intensity * pwfscale0 + pwfshift0, 0.5)).r;
                  gl_FragData[0] = vec4(tcolor, scalarOpacity * opacity);
                #endif
                `)]).result;break;case 2:o=k.substitute(o,"//VTK::TCoord::Impl",["vec4 tcolor = texture2D(texture1, tcoordVCVSOutput);","float intensity = tcolor.r*cscale0 + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(intensity, 0.5)).rgb, pwfscale0*tcolor.g + pwfshift0);"]).result;break;case 3:o=k.substitute(o,"//VTK::TCoord::Impl",["vec4 tcolor = cscale0*texture2D(texture1, tcoordVCVSOutput.st) + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(tcolor.r,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.g,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.b,0.5)).r, opacity);"]).result;break;default:o=k.substitute(o,"//VTK::TCoord::Impl",["vec4 tcolor = cscale0*texture2D(texture1, tcoordVCVSOutput.st) + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(tcolor.r,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.g,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.b,0.5)).r, tcolor.a);"]).result}e.haveSeenDepthRequest&&(o=k.substitute(o,"//VTK::ZBuffer::Dec","uniform int depthRequest;").result,o=k.substitute(o,"//VTK::ZBuffer::Impl",["if (depthRequest == 1) {","float iz = floor(gl_FragCoord.z*65535.0 + 0.1);","float rf = floor(iz/256.0)/255.0;","float gf = mod(iz,256.0)/255.0;","gl_FragData[0] = vec4(rf, gf, 0.0, 1.0); }"]).result),r.Vertex=s,r.Fragment=o,t.replaceShaderClip(r,a,i),t.replaceShaderCoincidentOffset(r,a,i)},t.replaceShaderClip=(r,a,i)=>{let s=r.Vertex,o=r.Fragment;if(e.renderable.getNumberOfClippingPlanes()){let c=e.renderable.getNumberOfClippingPlanes();c>6&&(ce("OpenGL has a limit of 6 clipping planes"),c=6),s=k.substitute(s,"//VTK::Clip::Dec",["uniform int numClipPlanes;","uniform vec4 clipPlanes[6];","varying float clipDistancesVSOutput[6];"]).result,s=k.substitute(s,"//VTK::Clip::Impl",["for (int planeNum = 0; planeNum < 6; planeNum++)","    {","    if (planeNum >= numClipPlanes)","        {","        break;","        }","    clipDistancesVSOutput[planeNum] = dot(clipPlanes[planeNum], vertexMC);","    }"]).result,o=k.substitute(o,"//VTK::Clip::Dec",["uniform int numClipPlanes;","varying float clipDistancesVSOutput[6];"]).result,o=k.substitute(o,"//VTK::Clip::Impl",["for (int planeNum = 0; planeNum < 6; planeNum++)","    {","    if (planeNum >= numClipPlanes)","        {","        break;","        }","    if (clipDistancesVSOutput[planeNum] < 0.0) discard;","    }"]).result}r.Vertex=s,r.Fragment=o},t.getNeedToRebuildShaders=(r,a,i)=>{let s=e.openGLTexture.getComponents(),o=i.getProperty().getIndependentComponents(),c=!1;return(!e.currentRenderPass&&e.lastRenderPassShaderReplacement||e.currentRenderPass&&e.currentRenderPass.getShaderReplacement()!==e.lastRenderPassShaderReplacement)&&(c=!0),c||e.lastHaveSeenDepthRequest!==e.haveSeenDepthRequest||r.getProgram()?.getHandle()===0||r.getShaderSourceTime().getMTime()<e.renderable.getMTime()||r.getShaderSourceTime().getMTime()<e.currentInput.getMTime()||r.getShaderSourceTime().getMTime()<i.getProperty().getMTime()||e.lastTextureComponents!==s||e.lastIndependentComponents!==o?(e.lastHaveSeenDepthRequest=e.haveSeenDepthRequest,e.lastTextureComponents=s,e.lastIndependentComponents=o,!0):!1},t.updateShaders=(r,a,i)=>{if(e.lastBoundBO=r,t.getNeedToRebuildShaders(r,a,i)){let s={Vertex:null,Fragment:null,Geometry:null};t.buildShaders(s,a,i);let o=e._openGLRenderWindow.getShaderCache().readyShaderProgramArray(s.Vertex,s.Fragment,s.Geometry);o!==r.getProgram()&&(r.setProgram(o),r.getVAO().releaseGraphicsResources()),r.getShaderSourceTime().modified()}else e._openGLRenderWindow.getShaderCache().readyShaderProgram(r.getProgram());r.getVAO().bind(),t.setMapperShaderParameters(r,a,i),t.setCameraShaderParameters(r,a,i),t.setPropertyShaderParameters(r,a,i)},t.setMapperShaderParameters=(r,a,i)=>{r.getCABO().getElementCount()&&(e.VBOBuildTime>r.getAttributeUpdateTime().getMTime()||r.getShaderSourceTime().getMTime()>r.getAttributeUpdateTime().getMTime())&&(r.getProgram().isAttributeUsed("vertexMC")&&(r.getVAO().addAttributeArray(r.getProgram(),r.getCABO(),"vertexMC",r.getCABO().getVertexOffset(),r.getCABO().getStride(),e.context.FLOAT,3,e.context.FALSE)||_r("Error setting vertexMC in shader VAO.")),r.getProgram().isAttributeUsed("tcoordMC")&&r.getCABO().getTCoordOffset()&&(r.getVAO().addAttributeArray(r.getProgram(),r.getCABO(),"tcoordMC",r.getCABO().getTCoordOffset(),r.getCABO().getStride(),e.context.FLOAT,r.getCABO().getTCoordComponents(),e.context.FALSE)||_r("Error setting tcoordMC in shader VAO.")),r.getAttributeUpdateTime().modified());let s=e.openGLTexture.getTextureUnit();r.getProgram().setUniformi("texture1",s);let o=e.openGLTexture.getComponents(),c=i.getProperty().getIndependentComponents();if(c)for(let l=0;l<o;l++)r.getProgram().setUniformf(`mix${l}`,i.getProperty().getComponentWeight(l));let f=e.openGLTexture.getShiftAndScale();for(let l=0;l<o;l++){let h=i.getProperty().getColorWindow(),y=i.getProperty().getColorLevel(),p=c?l:0,v=i.getProperty().getRGBTransferFunction(p);if(v&&i.getProperty().getUseLookupTableScalarRange()){let T=v.getRange();h=T[1]-T[0],y=.5*(T[1]+T[0])}let x=f.scale/h,S=(f.shift-y)/h+.5;r.getProgram().setUniformf(`cshift${l}`,S),r.getProgram().setUniformf(`cscale${l}`,x)}for(let l=0;l<o;l++){let h=1,y=0,p=c?l:0,v=i.getProperty().getPiecewiseFunction(p);if(v){let x=v.getRange(),S=x[1]-x[0],T=.5*(x[0]+x[1]);h=f.scale/S,y=(f.shift-T)/S+.5}r.getProgram().setUniformf(`pwfshift${l}`,y),r.getProgram().setUniformf(`pwfscale${l}`,h)}if(e.haveSeenDepthRequest&&r.getProgram().setUniformi("depthRequest",e.renderDepth?1:0),r.getProgram().isUniformUsed("coffset")){let l=t.getCoincidentParameters(a,i);r.getProgram().setUniformf("coffset",l.offset),r.getProgram().isUniformUsed("cfactor")&&r.getProgram().setUniformf("cfactor",l.factor)}let u=e.colorTexture.getTextureUnit();r.getProgram().setUniformi("colorTexture1",u);let g=e.pwfTexture.getTextureUnit();if(r.getProgram().setUniformi("pwfTexture1",g),i.getProperty().getUseLabelOutline()){let l=e.labelOutlineThicknessTexture.getTextureUnit();r.getProgram().setUniformi("labelOutlineTexture1",l);let h=e.labelOutlineOpacityTexture.getTextureUnit();r.getProgram().setUniformi("labelOutlineOpacityTexture1",h)}if(e.renderable.getNumberOfClippingPlanes()){let l=e.renderable.getNumberOfClippingPlanes();l>6&&(ce("OpenGL has a limit of 6 clipping planes"),l=6);let h=r.getCABO().getCoordShiftAndScaleEnabled()?r.getCABO().getInverseShiftAndScaleMatrix():null,y=h?F.copy(e.imagematinv,i.getMatrix()):i.getMatrix();h&&(F.transpose(y,y),F.multiply(y,y,h),F.transpose(y,y)),F.transpose(e.imagemat,e.currentInput.getIndexToWorld()),F.multiply(e.imagematinv,y,e.imagemat);let p=[];for(let v=0;v<l;v++){let x=[];e.renderable.getClippingPlaneInDataCoords(e.imagematinv,v,x);for(let S=0;S<4;S++)p.push(x[S])}r.getProgram().setUniformi("numClipPlanes",l),r.getProgram().setUniform4fv("clipPlanes",p)}},t.setCameraShaderParameters=(r,a,i)=>{let s=r.getProgram(),o=e.openGLImageSlice.getKeyMatrices(),c=e.currentInput,f=c.getIndexToWorld();F.multiply(e.imagemat,o.mcwc,f);let u=e.openGLCamera.getKeyMatrices(a);if(F.multiply(e.imagemat,u.wcpc,e.imagemat),r.getCABO().getCoordShiftAndScaleEnabled()){let g=r.getCABO().getInverseShiftAndScaleMatrix();F.multiply(e.imagemat,e.imagemat,g)}if(s.setUniformMatrix("MCPCMatrix",e.imagemat),i.getProperty().getUseLabelOutline()===!0){let g=c.getWorldToIndex(),l=c.getDimensions(),h=e.renderable.getClosestIJKAxis().ijkMode;h===vt.NONE&&(h=vt.K),s.setUniform3i("imageDimensions",l[0],l[1],l[2]),s.setUniformi("sliceAxis",h),s.setUniformMatrix("vWCtoIDX",g);let y=e.openGLCamera.getKeyMatrices(a);F.invert(e.projectionToWorld,y.wcpc),e.openGLCamera.getKeyMatrices(a),s.setUniformMatrix("PCWCMatrix",e.projectionToWorld);let p=t.getRenderTargetSize();s.setUniformf("vpWidth",p[0]),s.setUniformf("vpHeight",p[1]);let v=t.getRenderTargetOffset();s.setUniformf("vpOffsetX",v[0]/p[0]),s.setUniformf("vpOffsetY",v[1]/p[1])}},t.setPropertyShaderParameters=(r,a,i)=>{let s=r.getProgram(),o=i.getProperty().getOpacity();s.setUniformf("opacity",o)},t.renderPieceStart=(r,a)=>{t.updateBufferObjects(r,a),e.lastBoundBO=null},t.renderPieceDraw=(r,a)=>{let i=e.context;e.openGLTexture.activate(),e.colorTexture.activate(),a.getProperty().getUseLabelOutline()&&(e.labelOutlineThicknessTexture.activate(),e.labelOutlineOpacityTexture.activate()),e.pwfTexture.activate(),e.tris.getCABO().getElementCount()&&(t.updateShaders(e.tris,r,a),i.drawArrays(i.TRIANGLES,0,e.tris.getCABO().getElementCount()),e.tris.getVAO().release()),e.openGLTexture.deactivate(),e.colorTexture.deactivate(),a.getProperty().getUseLabelOutline()&&(e.labelOutlineThicknessTexture.deactivate(),e.labelOutlineOpacityTexture.deactivate()),e.pwfTexture.deactivate()},t.renderPieceFinish=(r,a)=>{},t.renderPiece=(r,a)=>{if(t.invokeEvent({type:"StartEvent"}),e.renderable.update(),e.currentInput=e.renderable.getCurrentImage(),t.invokeEvent({type:"EndEvent"}),!e.currentInput){_r("No input!");return}t.renderPieceStart(r,a),t.renderPieceDraw(r,a),t.renderPieceFinish(r,a)},t.updateBufferObjects=(r,a)=>{t.getNeedToRebuildBufferObjects(r,a)&&t.buildBufferObjects(r,a)},t.getNeedToRebuildBufferObjects=(r,a)=>e.VBOBuildTime.getMTime()<t.getMTime()||e.VBOBuildTime.getMTime()<a.getMTime()||e.VBOBuildTime.getMTime()<e.renderable.getMTime()||e.VBOBuildTime.getMTime()<a.getProperty().getMTime()||e.VBOBuildTime.getMTime()<e.currentInput.getMTime()||!e.openGLTexture?.getHandle()||!e.colorTexture?.getHandle()||a.getProperty().getUseLabelOutline()&&(!e.labelOutlineThicknessTexture?.getHandle()||!e.labelOutlineOpacityTexture?.getHandle())||!e.pwfTexture?.getHandle(),t.buildBufferObjects=(r,a)=>{let i=e.currentInput;if(!i)return;let s=i.getPointData()&&i.getPointData().getScalars();if(!s)return;let o=s.getDataType(),c=s.getNumberOfComponents(),f=a.getProperty(),u=f.getInterpolationType(),g=f.getIndependentComponents(),l=g?c:1,h=g?2*l:1,y=[];for(let V=0;V<l;++V)y.push(f.getRGBTransferFunction(V));let p=xt(y,g,l),v=f.getRGBTransferFunction(),x=e._openGLRenderWindow.getGraphicsResourceForObject(v);if(!x?.oglObject?.getHandle()||x?.hash!==p){e.colorTexture=de.newInstance({resizable:!0}),e.colorTexture.setOpenGLRenderWindow(e._openGLRenderWindow);let V=e.renderable.getColorTextureWidth();V<=0&&(V=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let N=V*h*3,_=new Uint8ClampedArray(N);if(u===tn.NEAREST?(e.colorTexture.setMinificationFilter(j.NEAREST),e.colorTexture.setMagnificationFilter(j.NEAREST)):(e.colorTexture.setMinificationFilter(j.LINEAR),e.colorTexture.setMagnificationFilter(j.LINEAR)),v){let L=new Float32Array(V*3);for(let B=0;B<l;B++){let b=f.getRGBTransferFunction(B),G=b.getRange();if(b.getTable(G[0],G[1],V,L,1),g)for(let U=0;U<V*3;U++)_[B*V*6+U]=255*L[U],_[B*V*6+U+V*3]=255*L[U];else for(let U=0;U<V*3;U++)_[B*V*6+U]=255*L[U]}e.colorTexture.resetFormatAndType(),e.colorTexture.create2DFromRaw({width:V,height:h,numComps:3,dataType:ee.UNSIGNED_CHAR,data:_})}else{for(let L=0;L<V*3;++L)_[L]=255*L/((V-1)*3),_[L+1]=255*L/((V-1)*3),_[L+2]=255*L/((V-1)*3);e.colorTexture.create2DFromRaw({width:V,height:1,numComps:3,dataType:ee.UNSIGNED_CHAR,data:_})}v&&(e._openGLRenderWindow.setGraphicsResourceForObject(v,e.colorTexture,p),v!==e._colorTransferFunc&&(e._openGLRenderWindow.registerGraphicsResourceUser(v,t),e._openGLRenderWindow.unregisterGraphicsResourceUser(e._colorTransferFunc,t)),e._colorTransferFunc=v)}else e.colorTexture=x.oglObject;let S=[];for(let V=0;V<l;++V)S.push(f.getPiecewiseFunction(V));let T=xt(S,g,l),d=f.getPiecewiseFunction(),C=e._openGLRenderWindow.getGraphicsResourceForObject(d);if(!C?.oglObject?.getHandle()||C?.hash!==T){let V=e.renderable.getOpacityTextureWidth();V<=0&&(V=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let N=V*h,_=new Uint8ClampedArray(N);if(e.pwfTexture=de.newInstance({resizable:!0}),e.pwfTexture.setOpenGLRenderWindow(e._openGLRenderWindow),u===tn.NEAREST?(e.pwfTexture.setMinificationFilter(j.NEAREST),e.pwfTexture.setMagnificationFilter(j.NEAREST)):(e.pwfTexture.setMinificationFilter(j.LINEAR),e.pwfTexture.setMagnificationFilter(j.LINEAR)),d){let L=new Float32Array(N),B=new Float32Array(V);for(let b=0;b<l;++b){let G=f.getPiecewiseFunction(b);if(G===null)L.fill(1);else{let U=G.getRange();if(G.getTable(U[0],U[1],V,B,1),g)for(let z=0;z<V;z++)L[b*V*2+z]=B[z],L[b*V*2+z+V]=B[z];else for(let z=0;z<V;z++)L[b*V*2+z]=B[z]}}e.pwfTexture.resetFormatAndType(),e.pwfTexture.create2DFromRaw({width:V,height:h,numComps:1,dataType:ee.FLOAT,data:L})}else _.fill(255),e.pwfTexture.create2DFromRaw({width:V,height:1,numComps:1,dataType:ee.UNSIGNED_CHAR,data:_});d&&(e._openGLRenderWindow.setGraphicsResourceForObject(d,e.pwfTexture,T),d!==e._pwFunc&&(e._openGLRenderWindow.registerGraphicsResourceUser(d,t),e._openGLRenderWindow.unregisterGraphicsResourceUser(e._pwFunc,t)),e._pwFunc=d)}else e.pwfTexture=C.oglObject;a.getProperty().getUseLabelOutline()&&(t.updatelabelOutlineThicknessTexture(a),t.updateLabelOutlineOpacityTexture(a));let{ijkMode:w}=e.renderable.getClosestIJKAxis(),D=e.renderable.getSlice();w!==e.renderable.getSlicingMode()&&(D=e.renderable.getSliceAtPosition(D));let m=e.renderable.isA("vtkImageArrayMapper")?e.renderable.getSubSlice():Math.round(D),M=i.getExtent(),R;w===vt.I&&(R=m-M[0]),w===vt.J&&(R=m-M[2]),(w===vt.K||w===vt.NONE)&&(R=m-M[4]);let E=`${D}A${i.getMTime()}A${s.getMTime()}B${t.getMTime()}C${e.renderable.getSlicingMode()}D${a.getProperty().getInterpolationType()}`;if(e.VBOBuildString!==E){let V=i.getDimensions();e.openGLTexture||(e.openGLTexture=de.newInstance({resizable:!0})),e.openGLTexture.setOpenGLRenderWindow(e._openGLRenderWindow),e.openGLTexture.setOglNorm16Ext(e.context.getExtension("EXT_texture_norm16")),u===tn.NEAREST?(new Set([1,3,4]).has(c)&&o===ee.UNSIGNED_CHAR&&!g?(e.openGLTexture.setGenerateMipmap(!0),e.openGLTexture.setMinificationFilter(j.NEAREST)):e.openGLTexture.setMinificationFilter(j.NEAREST),e.openGLTexture.setMagnificationFilter(j.NEAREST)):(c===4&&o===ee.UNSIGNED_CHAR&&!g?(e.openGLTexture.setGenerateMipmap(!0),e.openGLTexture.setMinificationFilter(j.LINEAR_MIPMAP_LINEAR)):e.openGLTexture.setMinificationFilter(j.LINEAR),e.openGLTexture.setMagnificationFilter(j.LINEAR)),e.openGLTexture.setWrapS(bn.CLAMP_TO_EDGE),e.openGLTexture.setWrapT(bn.CLAMP_TO_EDGE);let N=V[0]*V[1]*c,_=new Float32Array(12),L=new Float32Array(8);for(let I=0;I<4;I++)L[I*2]=I%2?1:0,L[I*2+1]=I>1?1:0;let B=[vt.X,vt.Y,vt.Z].includes(e.renderable.getSlicingMode())?D:m,b=i.getSpatialExtent(),G=s.getData(),U=null;if(w===vt.I){U=new G.constructor(V[2]*V[1]*c);let I=0;for(let oe=0;oe<V[2];oe++)for(let ae=0;ae<V[1];ae++){let P=(R+ae*V[0]+oe*V[0]*V[1])*c;I=(oe*V[1]+ae)*c;let H=P+c;for(;P<H;)U[I++]=G[P++]}V[0]=V[1],V[1]=V[2],_[0]=B,_[1]=b[2],_[2]=b[4],_[3]=B,_[4]=b[3],_[5]=b[4],_[6]=B,_[7]=b[2],_[8]=b[5],_[9]=B,_[10]=b[3],_[11]=b[5]}else if(w===vt.J){U=new G.constructor(V[2]*V[0]*c);let I=0;for(let oe=0;oe<V[2];oe++)for(let ae=0;ae<V[0];ae++){let P=(ae+R*V[0]+oe*V[0]*V[1])*c;I=(oe*V[0]+ae)*c;let H=P+c;for(;P<H;)U[I++]=G[P++]}V[1]=V[2],_[0]=b[0],_[1]=B,_[2]=b[4],_[3]=b[1],_[4]=B,_[5]=b[4],_[6]=b[0],_[7]=B,_[8]=b[5],_[9]=b[1],_[10]=B,_[11]=b[5]}else w===vt.K||w===vt.NONE?(U=G.subarray(R*N,(R+1)*N),_[0]=b[0],_[1]=b[2],_[2]=B,_[3]=b[1],_[4]=b[2],_[5]=B,_[6]=b[0],_[7]=b[3],_[8]=B,_[9]=b[1],_[10]=b[3],_[11]=B):_r("Reformat slicing not yet supported.");let z=s.getRanges();e.openGLTexture.resetFormatAndType(),e.openGLTexture.create2DFilterableFromRaw({width:V[0],height:V[1],numComps:c,dataType:s.getDataType(),data:U,preferSizeOverAccuracy:!!e.renderable.getPreferSizeOverAccuracy?.(),ranges:z}),e.openGLTexture.activate(),e.openGLTexture.sendParameters(),e.openGLTexture.deactivate();let A=Y.newInstance({numberOfComponents:3,values:_});A.setName("points");let Q=Y.newInstance({numberOfComponents:2,values:L});Q.setName("tcoords");let X=new Uint16Array(8);X[0]=3,X[1]=0,X[2]=1,X[3]=3,X[4]=3,X[5]=0,X[6]=3,X[7]=2;let te=be.newInstance({values:X});e.tris.getCABO().createVBO(te,"polys",Ke.SURFACE,{points:A,tcoords:Q,cellOffset:0,forceFlatten:!0}),e.VBOBuildTime.modified(),e.VBOBuildString=E}},t.updateLabelOutlineOpacityTexture=r=>{let a=r.getProperty().getLabelOutlineOpacity();typeof a=="number"&&(e._cachedLabelOutlineOpacityObj?.[0]===a?a=e._cachedLabelOutlineOpacityObj:a=[a],e._cachedLabelOutlineOpacityObj=a);let i=e._openGLRenderWindow.getGraphicsResourceForObject(a),s=`${a.join("-")}`;if(!i?.oglObject?.getHandle()||i?.hash!==s){let o=e.renderable.getLabelOutlineTextureWidth();o<=0&&(o=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let c=1,f=o*c,u=new Float32Array(f);for(let g=0;g<o;++g)u[g]=a[g]??a[0];e.labelOutlineOpacityTexture=de.newInstance({resizable:!1}),e.labelOutlineOpacityTexture.setOpenGLRenderWindow(e._openGLRenderWindow),e.labelOutlineOpacityTexture.resetFormatAndType(),e.labelOutlineOpacityTexture.setMinificationFilter(j.NEAREST),e.labelOutlineOpacityTexture.setMagnificationFilter(j.NEAREST),e.labelOutlineOpacityTexture.create2DFromRaw({width:o,height:c,numComps:1,dataType:ee.FLOAT,data:u}),a&&(e._openGLRenderWindow.setGraphicsResourceForObject(a,e.labelOutlineOpacityTexture,s),a!==e._labelOutlineOpacity&&(e._openGLRenderWindow.registerGraphicsResourceUser(a,t),e._openGLRenderWindow.unregisterGraphicsResourceUser(e._labelOutlineOpacity,t)),e._labelOutlineOpacity=a)}else e.labelOutlineOpacityTexture=i.oglObject},t.updatelabelOutlineThicknessTexture=r=>{let a=r.getProperty().getLabelOutlineThicknessByReference(),i=e._openGLRenderWindow.getGraphicsResourceForObject(a),s=`${a.join("-")}`;if(!i?.oglObject?.getHandle()||i?.hash!==s){let o=e.renderable.getLabelOutlineTextureWidth();o<=0&&(o=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let c=1,f=o*c,u=new Uint8Array(f);for(let g=0;g<o;++g)u[g]=typeof a[g]<"u"?a[g]:a[0];e.labelOutlineThicknessTexture=de.newInstance({resizable:!1}),e.labelOutlineThicknessTexture.setOpenGLRenderWindow(e._openGLRenderWindow),e.labelOutlineThicknessTexture.resetFormatAndType(),e.labelOutlineThicknessTexture.setMinificationFilter(j.NEAREST),e.labelOutlineThicknessTexture.setMagnificationFilter(j.NEAREST),e.labelOutlineThicknessTexture.create2DFromRaw({width:o,height:c,numComps:1,dataType:ee.UNSIGNED_CHAR,data:u}),a&&(e._openGLRenderWindow.setGraphicsResourceForObject(a,e.labelOutlineThicknessTexture,s),a!==e._labelOutlineThicknessArray&&(e._openGLRenderWindow.registerGraphicsResourceUser(a,t),e._openGLRenderWindow.unregisterGraphicsResourceUser(e._labelOutlineThicknessArray,t)),e._labelOutlineThicknessArray=a)}else e.labelOutlineThicknessTexture=i.oglObject},t.getRenderTargetSize=()=>{if(e._useSmallViewport)return[e._smallViewportWidth,e._smallViewportHeight];let{usize:r,vsize:a}=e._openGLRenderer.getTiledSizeAndOrigin();return[r,a]},t.getRenderTargetOffset=()=>{let{lowerLeftU:r,lowerLeftV:a}=e._openGLRenderer.getTiledSizeAndOrigin();return[r,a]},t.delete=at(()=>{e._openGLRenderWindow&&n(e._openGLRenderWindow)},t.delete)}var QO={VBOBuildTime:0,VBOBuildString:null,openGLTexture:null,tris:null,imagemat:null,imagematinv:null,colorTexture:null,pwfTexture:null,labelOutlineThicknessTexture:null,labelOutlineOpacityTexture:null,lastHaveSeenDepthRequest:!1,haveSeenDepthRequest:!1,lastTextureComponents:0};function JO(t,e,n={}){Object.assign(e,QO,n),ue.extend(t,e,n),nt.implementReplaceShaderCoincidentOffset(t,e,n),nt.implementBuildShadersWithReplacements(t,e,n),e.tris=Ye.newInstance(),e.imagemat=F.identity(new Float64Array(16)),e.imagematinv=F.identity(new Float64Array(16)),e.projectionToWorld=F.identity(new Float64Array(16)),e.idxToView=F.identity(new Float64Array(16)),e.idxNormalMatrix=K.identity(new Float64Array(9)),e.modelToView=F.identity(new Float64Array(16)),e.projectionToView=F.identity(new Float64Array(16)),ie(t,e,[]),e.VBOBuildTime={},se(e.VBOBuildTime),ZO(t,e)}var eR=J(JO,"vtkOpenGLImageMapper");le("vtkAbstractImageMapper",eR);function tR(t,e){e.classHierarchy.push("vtkOpenGLImageSlice"),t.buildPass=n=>{if(!(!e.renderable||!e.renderable.getVisibility())&&n){if(!e.renderable)return;e._openGLRenderWindow=t.getLastAncestorOfType("vtkOpenGLRenderWindow"),e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e.context=e._openGLRenderWindow.getContext(),t.prepareNodes(),t.addMissingNode(e.renderable.getMapper()),t.removeUnusedNodes()}},t.traverseZBufferPass=n=>{!e.renderable||!e.renderable.getNestedVisibility()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.children.forEach(r=>{r.traverse(n)}),t.apply(n,!1))},t.traverseOpaqueZBufferPass=n=>t.traverseOpaquePass(n),t.traverseOpaquePass=n=>{!e.renderable||!e.renderable.getNestedVisibility()||!e.renderable.getIsOpaque()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.children.forEach(r=>{r.traverse(n)}),t.apply(n,!1))},t.traverseTranslucentPass=n=>{!e.renderable||!e.renderable.getNestedVisibility()||e.renderable.getIsOpaque()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.children.forEach(r=>{r.traverse(n)}),t.apply(n,!1))},t.queryPass=(n,r)=>{if(n){if(!e.renderable||!e.renderable.getVisibility())return;e.renderable.getIsOpaque()?r.incrementOpaqueActorCount():r.incrementTranslucentActorCount()}},t.zBufferPass=(n,r)=>t.opaquePass(n,r),t.opaqueZBufferPass=(n,r)=>t.opaquePass(n,r),t.opaquePass=(n,r)=>{n&&e.context.depthMask(!0)},t.translucentPass=(n,r)=>{e.context.depthMask(!n)},t.getKeyMatrices=()=>(e.renderable.getMTime()>e.keyMatrixTime.getMTime()&&(F.copy(e.keyMatrices.mcwc,e.renderable.getMatrix()),F.transpose(e.keyMatrices.mcwc,e.keyMatrices.mcwc),e.keyMatrixTime.modified()),e.keyMatrices)}var nR={context:null,keyMatrixTime:null,keyMatrices:null};function rR(t,e,n={}){Object.assign(e,nR,n),ue.extend(t,e,n),e.keyMatrixTime={},se(e.keyMatrixTime,{mtime:0}),e.keyMatrices={mcwc:F.identity(new Float64Array(16))},ie(t,e,["context"]),tR(t,e)}var aR=J(rR,"vtkOpenGLImageSlice");le("vtkImageSlice",aR);var{vtkWarningMacro:iR}=O,uc;function sR(t,e){e.classHierarchy.push("vtkAbstractTransform","vtkHomogeneousTransform","vtkTransform"),t.transformPoint=(n,r)=>(W.transformMat4(r,n,e.matrix),r),t.transformPoints=(n,r)=>{let a=new Float64Array(3),i=new Float64Array(3);for(let s=0;s<n.length;s+=3)a[0]=n[s],a[1]=n[s+1],a[2]=n[s+2],W.transformMat4(i,a,e.matrix),r[s]=i[0],r[s+1]=i[1],r[s+2]=i[2];return r},t.preMultiply=()=>{t.setPreMultiplyFlag(!0)},t.postMultiply=()=>{t.setPreMultiplyFlag(!1)},t.transformMatrix=(n,r)=>(e.preMultiplyFlag?F.multiply(r,e.matrix,n):F.multiply(r,n,e.matrix),r),t.transformMatrices=(n,r)=>{let a=new Float64Array(16),i=new Float64Array(16),s=e.preMultiplyFlag?()=>F.multiply(i,e.matrix,a):()=>F.multiply(i,a,e.matrix);for(let o=0;o<n.length;o+=16){for(let c=0;c<16;++c)a[c]=n[o+c];s();for(let c=0;c<16;++c)r[o+c]=i[c]}return r},t.getInverse=()=>uc({matrix:me.invertMatrix(Array.from(e.matrix),[],4),preMultiplyFlag:e.preMultiplyFlag}),t.translate=(n,r,a)=>{if(n===0&&r===0&&a===0)return;let i=F.create();F.fromTranslation(i,[n,r,a]),e.preMultiplyFlag?F.multiply(e.matrix,e.matrix,i):F.multiply(e.matrix,i,e.matrix),t.modified()},t.rotateWXYZ=(n,r,a,i)=>{if(r===0&&a===0&&i===0){iR("No rotation applied, axis is zero vector.");return}if(n===0)return;let s=me.radiansFromDegrees(n),o=_e.create();_e.setAxisAngle(o,[r,a,i],s);let c=new Float64Array(16);F.fromQuat(c,o),e.preMultiplyFlag?F.multiply(e.matrix,e.matrix,c):F.multiply(e.matrix,c,e.matrix),t.modified()},t.rotateX=n=>{t.rotateWXYZ(n,1,0,0)},t.rotateY=n=>{t.rotateWXYZ(n,0,1,0)},t.rotateZ=n=>{t.rotateWXYZ(n,0,0,1)},t.scale=(n,r,a)=>{if(n===1&&r===1&&a===1)return;let i=F.create();F.fromScaling(i,[n,r,a]),e.preMultiplyFlag?F.multiply(e.matrix,e.matrix,i):F.multiply(e.matrix,i,e.matrix),t.modified()},t.transformNormal=(n,r=[])=>{let a=K.fromMat4(K.create(),e.matrix),i=K.create();K.invert(i,a);let s=K.create();return K.transpose(s,i),t.transformVector(n,r,s),me.normalize(r),r},t.transformNormals=(n,r)=>{let a=n.getData(),i=r.getData(),s=[0,0,0],o=K.fromMat4(K.create(),e.matrix),c=K.create();K.invert(c,o);let f=K.create();K.transpose(f,c);for(let u=0;u<a.length;u+=3)s[0]=a[u],s[1]=a[u+1],s[2]=a[u+2],t.transformVector(s,s,f),me.normalize(s),i[u]=s[0],i[u+1]=s[1],i[u+2]=s[2]},t.transformVector=(n,r=[],a=null)=>{let i=a||K.fromMat4(K.create(),e.matrix);return W.transformMat3(r,n,i),r},t.transformVectors=(n,r)=>{let a=n.getData(),i=r.getData(),s=[0,0,0];for(let o=0;o<a.length;o+=3)s[0]=a[o],s[1]=a[o+1],s[2]=a[o+2],t.transformVector(s,s),me.normalize(s),i[o]=s[0],i[o+1]=s[1],i[o+2]=s[2]},t.transformPointsNormalsVectors=(n,r,a,i,s,o,c=null,f=null)=>{let u=n.getNumberOfPoints(),g=c?.length??0,l=new Float64Array(3),h=new Float64Array(3),y=new Float64Array(3),p=new Float64Array(3),v=!1,x=!1,S=!1,T=[];for(let d=0;d<u;d++){if(n.getPoint(d,l),h.set(l),t.transformPoint(l,l),r.setPoint(d,...l),me.areEquals(h,l)||(v=!0),s){let C=s.getData(),w=o.getData();l[0]=C[d*3],l[1]=C[d*3+1],l[2]=C[d*3+2],y.set(l),t.transformVector(l,l),w[d*3]=l[0],w[d*3+1]=l[1],w[d*3+2]=l[2],me.areEquals(y,l)||(x=!0)}if(a){let C=a.getData(),w=i.getData();l[0]=C[d*3],l[1]=C[d*3+1],l[2]=C[d*3+2],p.set(l),t.transformNormal(l,l),w[d*3]=l[0],w[d*3+1]=l[1],w[d*3+2]=l[2],me.areEquals(p,l)||(S=!0)}if(c)for(let C=0;C<g;C++){let w=c[C].getData(),D=f[C].getData();l[0]=w[d*3],l[1]=w[d*3+1],l[2]=w[d*3+2],y.set(l),t.transformVector(l,l),D[d*3]=l[0],D[d*3+1]=l[1],D[d*3+2]=l[2],!me.arrayEqual(y,l)&&!T.includes(C)&&T.push(C)}}v&&r.modified(),x&&o.modified(),S&&i.modified(),T.forEach(d=>f[d].modified())}}var oR={preMultiplyFlag:!1,matrix:[...on]};function xh(t,e,n={}){Object.assign(e,oR,n),O.obj(t,e),O.setGet(t,e,["preMultiplyFlag"]),O.setGetArray(t,e,["matrix"],16),sR(t,e)}uc=O.newInstance(xh,"vtkTransform");var yh={newInstance:uc,extend:xh};var{vtkErrorMacro:mh}=Ce;function cR(t){let e=t.getPolys().getData(),n=t.getStrips().getData(),r={cellSize:0,cell:[],done:!1,polyIdx:0,stripIdx:0,remainingStripLength:0,next(){if(r.polyIdx<e.length){r.cellSize=e[r.polyIdx];let a=r.polyIdx+1,i=a+r.cellSize;r.polyIdx=i;let s=0;for(let o=a;o<i;++o)r.cell[s++]=e[o]}else if(r.stripIdx<n.length){r.cellSize=3,r.remainingStripLength===0&&(r.remainingStripLength=n[r.stripIdx]-2,r.stripIdx+=3);let a=r.stripIdx-2,i=r.stripIdx+1;r.stripIdx++,r.remainingStripLength--;let s=0;for(let o=a;o<i;++o)r.cell[s++]=n[o]}else if(!r.done)r.done=!0;else throw new Error("Iterator is done")}};return r.next(),r}function fR(t,e){e.classHierarchy.push("vtkCutter");let n={...t};t.getMTime=()=>{let a=n.getMTime();return e.cutFunction&&(a=Math.max(a,e.cutFunction.getMTime())),a};function r(a,i){let s=a.getPoints(),o=s.getData(),c=a.getPointData(),f=s.getNumberOfPoints(),u=[],g=[],l=[],h={},y=D=>D-e.cutValue===0?0:D<e.cutValue?-1:1,p=c.getNumberOfArrays();for(let D=0;D<p;D++)h[c.getArrayName(D)]=[];(!e.cutScalars||e.cutScalars.length<f)&&(e.cutScalars=new Float32Array(f));let v=0,x=0;for(;v<o.length;)e.cutScalars[x++]=e.cutFunction.evaluateFunction(o[v++],o[v++],o[v++]);let S=[],T=new Array(3),d=new Array(3),C=[];for(let D=cR(a);!D.done;D.next()){if(D.cellSize<=2)continue;let m=null,M=null;for(let L=0;L<D.cellSize;L++)C[L]=e.cutScalars[D.cell[L]],m===null&&C[L]!==0&&(m=y(C[L]),M=L);let R=!0;for(let L=0;L<D.cell.length;L++)if(L!==M&&y(C[L])!==m){R=!1;break}if(R)continue;let E=[];for(let L=0;L<D.cellSize;L++){let B=L+1===D.cellSize?0:L+1,b=y(C[L]);if(y(C[B])===b)continue;let G=0,U=L,z=B;if(C[z]===0)U=B,z=L;else if(C[U]!==0){let I=C[z]-C[U];I<=0&&(U=B,z=L,I*=-1),I!==0&&(G=(e.cutValue-C[U])/I)}let A=D.cell[U],Q=D.cell[z];T[0]=o[A*3],T[1]=o[A*3+1],T[2]=o[A*3+2],d[0]=o[Q*3],d[1]=o[Q*3+1],d[2]=o[Q*3+2];let X=[T[0]+G*(d[0]-T[0]),T[1]+G*(d[1]-T[1]),T[2]+G*(d[2]-T[2])],te={};for(let I=0;I<p;I++){let oe=c.getArrayByIndex(I),ae=c.getArrayName(I),P=oe.getData(),H=oe.getNumberOfComponents(),fe=new Array(H);for(let pe=0;pe<H;pe++){let He=P[H*A+pe],De=P[H*Q+pe];fe[pe]=He+G*(De-He)}te[ae]=fe}E.push({pointEdge1:A,pointEdge2:Q,intersectedPoint:X,intersectedArrays:te,newPointID:-1})}let V=new Set,N=[];for(let L=0;L<E.length;L++){let B=E[L],b=!1;for(let U=0;U<S.length;U++){let z=S[U],A=B.pointEdge1===z.pointEdge1&&B.pointEdge2===z.pointEdge2,Q=B.intersectedPoint[0]===z.intersectedPoint[0]&&B.intersectedPoint[1]===z.intersectedPoint[1]&&B.intersectedPoint[2]===z.intersectedPoint[2];if(A||Q){b=!0,E[L].newPointID=z.newPointID;break}}b||(u.push(B.intersectedPoint[0]),u.push(B.intersectedPoint[1]),u.push(B.intersectedPoint[2]),Object.keys(B.intersectedArrays).forEach(U=>{h[U].push(...B.intersectedArrays[U])}),E[L].newPointID=u.length/3-1,S.push(E[L]));let G=E[L].newPointID;V.has(G)||(N.push(E[L]),V.add(G))}let _=N.length;_===2?g.push(_,N[0].newPointID,N[1].newPointID):_>2&&(l.push(_),N.forEach(L=>{l.push(L.newPointID)}))}i.getPoints().setData(Ua(s.getDataType(),u),3);let w=i.getPointData();for(let D=0;D<p;D++){let m=c.getArrayName(D),M=Y.newInstance({name:m,dataType:c.getArrayByIndex(D).getDataType(),values:h[m],numberOfComponents:c.getArrayByIndex(D).getNumberOfComponents()});w.addArray(M)}g.length!==0&&i.getLines().setData(Uint16Array.from(g)),l.length!==0&&i.getPolys().setData(Uint16Array.from(l))}t.requestData=(a,i)=>{let s=a[0];if(!s){mh("Invalid or missing input");return}if(!e.cutFunction){mh("Missing cut function");return}let o=i[0]?.initialize()||We.newInstance();r(s,o),i[0]=o}}var uR={cutFunction:null,cutScalars:null,cutValue:0};function Sh(t,e,n={}){Object.assign(e,uR,n),se(t,e),za(t,e,1,1),ie(t,e,["cutFunction","cutValue"]),fR(t,e)}var lR=J(Sh,"vtkCutter"),Ch={newInstance:lR,extend:Sh};var{vtkErrorMacro:gR}=O,pR=class{constructor(){this.segmentMapping={},this.segments=[null],this.faces=[]}addSegment(t){let e=t[0],n=t[t.length-1];if(e===n||t.length<2)return;let r=this.segmentMapping[e],a=this.segmentMapping[n];if(r!==void 0&&a!==void 0)if(Math.abs(r)===Math.abs(a)){let i=r<a?a:r,s=this.segments[i];if(r>0)for(let o=1;o<t.length-1;o++)s.push(t[o]);else for(let o=1;o<t.length-1;o++)s.unshift(t[t.length-1-o]);this.faces.push(s),this.segments[i]=null,this.segmentMapping[e]=void 0,this.segmentMapping[n]=void 0}else{let i=Math.abs(r),s=Math.abs(a),o=this.segments[i],c=this.segments[s];this.segments[i]=null,this.segments[s]=null,this.segmentMapping[o[0]]=void 0,this.segmentMapping[c[0]]=void 0,this.segmentMapping[o[o.length-1]]=void 0,this.segmentMapping[c[c.length-1]]=void 0,this.addSegment(t),this.addSegment(o),this.addSegment(c)}else if(r!==void 0){if(r>0){let i=this.segments[r];for(let s=1;s<t.length;s++)i.push(t[s]);this.segmentMapping[n]=r}else{let i=this.segments[-r];this.segmentMapping[n]=r;for(let s=1;s<t.length;s++)i.unshift(t[s])}this.segmentMapping[e]=void 0}else if(a!==void 0){if(a>0){let i=this.segments[a];for(let s=1;s<t.length;s++)i.push(t[t.length-1-s]);this.segmentMapping[e]=a}else{let i=this.segments[-a];this.segmentMapping[e]=a;for(let s=1;s<t.length;s++)i.unshift(t[t.length-s-1])}this.segmentMapping[n]=void 0}else{let i=this.segments.length;this.segments.push(t),this.segmentMapping[e]=-i,this.segmentMapping[n]=i}}};function hR(t,e){e.classHierarchy.push("vtkClosedPolyLineToSurfaceFilter"),t.requestData=(n,r)=>{let a=n[0];if(!a){gR("Invalid or missing input");return}let i=r[0]?.initialize()||We.newInstance();i.shallowCopy(a);let s=new pR,o=a.getLines().getData(),c=0;for(;c<o.length;){let l=o[c++],h=[];for(let y=0;y<l;y++)h.push(o[c+y]);s.addSegment(h),c+=l}let{faces:f}=s,u=f.length;for(let l=0;l<f.length;l++)u+=f[l].length;let g=new Uint16Array(u);c=0;for(let l=0;l<f.length;l++){let h=f[l];g[c++]=h.length;for(let y=0;y<h.length;y++)g[c++]=h[y]}i.setPolys(be.newInstance({values:g,name:"faces"})),r[0]=i}}var vR={};function wh(t,e,n={}){Object.assign(e,vR,n),O.obj(t,e),O.algo(t,e,1,1),hR(t,e)}var dR=O.newInstance(wh,"vtkClosedPolyLineToSurfaceFilter"),Oh={newInstance:dR,extend:wh};var TR=t=>t,Rh=1e-6,Mh=class{constructor(t=!1){this.matrix=F.identity(new Float64Array(16)),this.tmp=new Float64Array(3),this.angleConv=t?qt.toRadian:TR}rotateFromDirections(t,e){let n=new Float64Array(3),r=new Float64Array(3),a=new Float64Array(16);W.set(n,t[0],t[1],t[2]),W.set(r,e[0],e[1],e[2]),W.normalize(n,n),W.normalize(r,r);let i=W.dot(n,r);return i>=1?this:(W.cross(this.tmp,n,r),W.length(this.tmp)<Rh&&(W.cross(this.tmp,[1,0,0],t),W.length(this.tmp)<Rh&&W.cross(this.tmp,[0,1,0],t)),F.fromRotation(a,Math.acos(i),this.tmp),F.multiply(this.matrix,this.matrix,a),this)}rotate(t,e){return W.set(this.tmp,...e),W.normalize(this.tmp,this.tmp),F.rotate(this.matrix,this.matrix,this.angleConv(t),this.tmp),this}rotateX(t){return F.rotateX(this.matrix,this.matrix,this.angleConv(t)),this}rotateY(t){return F.rotateY(this.matrix,this.matrix,this.angleConv(t)),this}rotateZ(t){return F.rotateZ(this.matrix,this.matrix,this.angleConv(t)),this}translate(t,e,n){return W.set(this.tmp,t,e,n),F.translate(this.matrix,this.matrix,this.tmp),this}scale(t,e,n){return W.set(this.tmp,t,e,n),F.scale(this.matrix,this.matrix,this.tmp),this}multiply(t){return F.multiply(this.matrix,this.matrix,t),this}multiply3x3(t){return F.multiply(this.matrix,this.matrix,[t[0],t[1],t[2],0,t[3],t[4],t[5],0,t[6],t[7],t[8],0,0,0,0,1]),this}invert(){return F.invert(this.matrix,this.matrix),this}identity(){return F.identity(this.matrix),this}apply(t,e=0,n=-1){if(cn(on,this.matrix))return this;let r=n===-1?t.length:e+n*3;for(let a=e;a<r;a+=3)W.set(this.tmp,t[a],t[a+1],t[a+2]),W.transformMat4(this.tmp,this.tmp,this.matrix),t[a]=this.tmp[0],t[a+1]=this.tmp[1],t[a+2]=this.tmp[2];return this}getMatrix(){return this.matrix}setMatrix(t){return t&&t.length===16&&F.copy(this.matrix,t),this}};function xR(){return new Mh(!0)}function yR(){return new Mh(!1)}var ha={buildFromDegree:xR,buildFromRadian:yR};var mR=[2,0,1,2,2,3,2,4,5,2,6,7,2,0,2,2,1,3,2,4,6,2,5,7,2,0,4,2,1,5,2,2,6,2,3,7],SR=[4,0,1,3,2,4,4,6,7,5,4,8,10,11,9,4,12,13,15,14,4,16,18,19,17,4,20,21,23,22];function CR(t,e){e.classHierarchy.push("vtkCubeSource"),t.requestData=(n,r)=>{let a=r[0]?.initialize()||We.newInstance();r[0]=a;let i=24,s=O.newTypedArray(e.pointType,i*3);a.getPoints().setData(s,3);let o=O.newTypedArray(e.pointType,i*3),c=Y.newInstance({name:"Normals",values:o,numberOfComponents:3});a.getPointData().setNormals(c);let f=2;e.generate3DTextureCoordinates===!0&&(f=3);let u=O.newTypedArray(e.pointType,i*f),g=Y.newInstance({name:"TextureCoordinates",values:u,numberOfComponents:f});a.getPointData().setTCoords(g);let l=[0,0,0],h=[0,0,0],y=[0,0],p=0;l[0]=-e.xLength/2,h[0]=-1,h[1]=0,h[2]=0;for(let v=0;v<2;v++){l[1]=-e.yLength/2;for(let x=0;x<2;x++){y[1]=l[1]+.5,l[2]=-e.zLength/2;for(let S=0;S<2;S++)y[0]=(l[2]+.5)*(1-2*v),s[p*3]=l[0],s[p*3+1]=l[1],s[p*3+2]=l[2],o[p*3]=h[0],o[p*3+1]=h[1],o[p*3+2]=h[2],f===2?(u[p*f]=y[0],u[p*f+1]=y[1]):(u[p*f]=2*v-1,u[p*f+1]=2*x-1,u[p*f+2]=2*S-1),p++,l[2]+=e.zLength;l[1]+=e.yLength}l[0]+=e.xLength,h[0]+=2}l[1]=-e.yLength/2,h[1]=-1,h[0]=0,h[2]=0;for(let v=0;v<2;v++){l[0]=-e.xLength/2;for(let x=0;x<2;x++){y[0]=(l[0]+.5)*(2*v-1),l[2]=-e.zLength/2;for(let S=0;S<2;S++)y[1]=(l[2]+.5)*-1,s[p*3]=l[0],s[p*3+1]=l[1],s[p*3+2]=l[2],o[p*3]=h[0],o[p*3+1]=h[1],o[p*3+2]=h[2],f===2?(u[p*f]=y[0],u[p*f+1]=y[1]):(u[p*f]=2*x-1,u[p*f+1]=2*v-1,u[p*f+2]=2*S-1),p++,l[2]+=e.zLength;l[0]+=e.xLength}l[1]+=e.yLength,h[1]+=2}l[2]=-e.zLength/2,h[2]=-1,h[0]=0,h[1]=0;for(let v=0;v<2;v++){l[1]=-e.yLength/2;for(let x=0;x<2;x++){y[1]=l[1]+.5,l[0]=-e.xLength/2;for(let S=0;S<2;S++)y[0]=(l[0]+.5)*(2*v-1),s[p*3]=l[0],s[p*3+1]=l[1],s[p*3+2]=l[2],o[p*3]=h[0],o[p*3+1]=h[1],o[p*3+2]=h[2],f===2?(u[p*f]=y[0],u[p*f+1]=y[1]):(u[p*f]=2*S-1,u[p*f+1]=2*x-1,u[p*f+2]=2*v-1),p++,l[0]+=e.xLength;l[1]+=e.yLength}l[2]+=e.zLength,h[2]+=2}if(e.rotations&&ha.buildFromDegree().rotateX(e.rotations[0]).rotateY(e.rotations[1]).rotateZ(e.rotations[2]).apply(s).apply(o),e.center&&ha.buildFromRadian().translate(...e.center).apply(s),e.matrix){ha.buildFromRadian().setMatrix(e.matrix).apply(s);let v=[e.matrix[0],e.matrix[1],e.matrix[2],0,e.matrix[4],e.matrix[5],e.matrix[6],0,e.matrix[8],e.matrix[9],e.matrix[10],0,0,0,0,1];ha.buildFromRadian().setMatrix(v).apply(o)}e.generateFaces?a.getPolys().deepCopy(e._polys):a.getPolys().initialize(),e.generateLines?(a.getLines().deepCopy(e._lineCells),a.getPointData().setNormals(null)):a.getLines().initialize(),a.modified()},t.setBounds=(...n)=>{let r=[];if(Array.isArray(n[0]))r=n[0];else for(let a=0;a<n.length;a++)r.push(n[a]);r.length===6&&(t.setXLength(r[1]-r[0]),t.setYLength(r[3]-r[2]),t.setZLength(r[5]-r[4]),t.setCenter([(r[0]+r[1])/2,(r[2]+r[3])/2,(r[4]+r[5])/2]))}}var wR={xLength:1,yLength:1,zLength:1,pointType:"Float64Array",generate3DTextureCoordinates:!1,generateFaces:!0,generateLines:!1};function Eh(t,e,n={}){Object.assign(e,wR,n),O.obj(t,e),O.setGet(t,e,["xLength","yLength","zLength","generate3DTextureCoordinates","generateFaces","generateLines"]),O.setGetArray(t,e,["center","rotations"],3),O.setGetArray(t,e,["matrix"],16),e._polys=be.newInstance({values:Uint16Array.from(SR)}),e._lineCells=be.newInstance({values:Uint16Array.from(mR)}),O.moveToProtected(t,e,["polys","lineCells"]),O.algo(t,e,0,1),CR(t,e)}var OR=O.newInstance(Eh,"vtkCubeSource"),Dh={newInstance:OR,extend:Eh};var{vtkErrorMacro:Vh}=O;function RR(t,e){e.classHierarchy.push("vtkImageDataOutlineFilter");let n={...t};t.requestData=(r,a)=>{let i=r[0];if(!i||!i.isA("vtkImageData")){Vh("Invalid or missing input");return}let s=i.getSpatialExtent();if(!s){Vh("Unable to fetch spatial extents of input image.");return}e._cubeSource.setBounds(s),e._cubeSource.setMatrix(i.getIndexToWorld()),a[0]=e._cubeSource.getOutputData()},t.getMTime=()=>Math.max(n.getMTime(),e._cubeSource.getMTime()),t.setGenerateFaces=e._cubeSource.setGenerateFaces,t.setGenerateLines=e._cubeSource.setGenerateLines,t.getGenerateFaces=e._cubeSource.getGenerateFaces,t.getGenerateLines=e._cubeSource.getGenerateLines}var MR={};function Lh(t,e,n={}){Object.assign(e,MR,n),O.obj(t,e),O.algo(t,e,1,1),e._cubeSource=Dh.newInstance(),O.moveToProtected(t,e,["cubeSource","tmpOut"]),RR(t,e)}var ER=O.newInstance(Lh,"vtkImageDataOutlineFilter"),_h={newInstance:ER,extend:Lh};function DR(t,e){return t?t.getProperty(e)||t.getProperty():null}function Fh(t,e){let n=[];for(let r=0;r<e.length;r++){let a=DR(t,e[r].inputIndex);a?.getUseLabelOutline()&&n.push({property:a,arrayIndex:r})}return n}function lc(t,e){let n=[],r=[],a=0;for(let i=0;i<t.length;i++){let s=e(t[i].property);n.push(s),r.push(s.join("-")),a=Math.max(a,s.length)}return{dataArrays:n,hash:r.join("|"),width:a,height:n.length}}function Zi(t,e,n){for(let r=0;r<e.length;r++){let a=e[r],i=r*n;for(let s=0;s<n;s++)t[i+s]=a[s]??a[0]}return t}function Nh({colorWindow:t,colorLevel:e,useLookupTableScalarRange:n,colorRange:r,volumeScale:a=1,volumeOffset:i=0}){let s=t,o=e;return n&&r&&(s=r[1]-r[0],o=.5*(r[1]+r[0])),{colorScale:a/s,colorShift:(i-o)/s+.5}}function Bh({pwfRange:t,volumeScale:e=1,volumeOffset:n=0}){if(!t)return{opacityScale:1,opacityShift:0};let r=t[1]-t[0],a=.5*(t[0]+t[1]);return{opacityScale:e/r,opacityShift:(n-a)/r+.5}}var va=new Float64Array(9),kt=[0,0,0],bt=[0,0,0],Gh=W.create(),Uh=W.create();function kh(t,e=[0,0,1]){if(e[0]=0,e[1]=0,e[2]=1,t){let n=t.getNormal();e[0]=n[0],e[1]=n[1],e[2]=n[2]}return me.normalize(e),kt[0]=0,kt[1]=0,kt[2]=0,bt[0]=0,bt[1]=0,bt[2]=0,t?(me.perpendiculars(e,kt,bt,0),(me.norm(kt)<1e-6||me.norm(bt)<1e-6)&&(kt[0]=1,kt[1]=0,kt[2]=0,bt[0]=0,bt[1]=1,bt[2]=0)):(kt[0]=1,bt[1]=1),{planeNormal:e,tangent1:kt,tangent2:bt}}function gc(t,e,n,r){K.set(va,...t.getDirection()),K.invert(va,va),W.transformMat3(Gh,e,va),W.transformMat3(Uh,n,va);let a=t.getDimensions(),i=t.getSpacing(),s=Math.min(Math.abs(i[0]),Math.abs(i[1]),Math.abs(i[2]));return r[0]=s/(a[0]*Math.abs(i[0])),r[1]=s/(a[1]*Math.abs(i[1])),r[2]=s/(a[2]*Math.abs(i[2])),{tangent1:Gh,tangent2:Uh,texelSize:r}}var pc=[0,0,0];function VR(t){me.normalize(t);for(let e=0;e<3;++e){W.zero(pc),pc[e]=1;let n=me.dot(t,pc);if(n<-.999999||n>.999999)return[!0,e]}return[!1,2]}function bh(t,e,n){for(let r=0;r<n;++r)t[3*r]=e[0],t[3*r+1]=e[1],t[3*r+2]=e[2]}function zh(t,e){let n="",r=!0,a=2,i=e?.getBounds(),s=t.getSlicePolyData(),o=t.getSlicePlane();if(s)n=`PolyData${s.getMTime()}`;else if(o){if(n=`Plane${o.getMTime()}`,e){n=`${n}Image${e.getMTime()}`;let c=K.create();K.set(c,...e.getDirection()),K.invert(c,c);let f=[...o.getNormal()];W.transformMat3(f,f,c),[r,a]=VR(f)}}else{o=gt.newInstance(),o.setNormal(0,0,1);let c=[0,1,0,1,0,1];e&&(c=i),o.setOrigin(c[0],c[2],.5*(c[4]+c[5])),t.setSlicePlane(o),n=`Plane${o.getMTime()}Image${e?.getMTime?.()??0}`}return{resGeomString:n,slicePD:s,slicePlane:o,orthoSlicing:r,orthoAxis:a}}function Wh(t,e,n,r,a){n.setInputData(t),r.setInputConnection(n.getOutputPort()),r.setCutFunction(e),a.setInputConnection(r.getOutputPort()),a.update();let i=a.getOutputData(),s=i.getPoints().getData(),o=i.getPolys().getData(),c=[...e.getNormal()];me.normalize(c);let f=i.getPoints().getNumberOfPoints(),u=new Float32Array(f*3);return bh(u,c,f),{points:s,polys:o,normalsData:u}}function Ah(t,e,n,r){let a=new Float32Array(12),i=t.worldToIndex(e.getOrigin(),[0,0,0]),s=[(n+1)%3,(n+2)%3].sort(),o=t.getSpatialExtent(),c=0;for(let l=0;l<2;++l)for(let h=0;h<2;++h)a[c+n]=i[n],a[c+s[0]]=o[2*s[0]+h],a[c+s[1]]=o[2*s[1]+l],c+=3;r.setMatrix(t.getIndexToWorld()),r.transformPoints(a,a);let f=new Uint16Array([3,0,1,3,3,0,3,2]),u=[...e.getNormal()];me.normalize(u);let g=new Float32Array(12);return bh(g,u,4),{points:a,polys:f,normalsData:g}}var Ph=`//VTK::System::Dec

/*=========================================================================

  Program:   Visualization Toolkit
  Module:    vtkImageResliceMapperVS.glsl

  Copyright (c) Ken Martin, Will Schroeder, Bill Lorensen
  All rights reserved.
  See Copyright.txt or http://www.kitware.com/Copyright.htm for details.

     This software is distributed WITHOUT ANY WARRANTY; without even
     the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
     PURPOSE.  See the above copyright notice for more information.

=========================================================================*/

// all variables that represent positions or directions have a suffix
// indicating the coordinate system they are in. The possible values are
// MC - Model coordinates
// WC - World coordinates
// VC - View coordinates
// DC - Display coordinates
// TC - Texture coordinates

// frag position in VC
//VTK::PositionVC::Dec

// Texture coordinates
//VTK::TCoord::Dec

// picking support
//VTK::Picking::Dec

// camera and actor matrix values
//VTK::Camera::Dec

void main()
{
  //VTK::PositionVC::Impl

  //VTK::TCoord::Impl

  //VTK::Picking::Impl
}
`;var Hh=`//VTK::System::Dec

/*=========================================================================

  Program:   Visualization Toolkit
  Module:    vtkImageResliceMapperFS.glsl

  Copyright (c) Ken Martin, Will Schroeder, Bill Lorensen
  All rights reserved.
  See Copyright.txt or http://www.kitware.com/Copyright.htm for details.

     This software is distributed WITHOUT ANY WARRANTY; without even
     the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
     PURPOSE.  See the above copyright notice for more information.

=========================================================================*/
// Template for the gpu image mapper fragment shader

// VC position of this fragment
//VTK::PositionVC::Dec

// Texture coordinates
//VTK::TCoord::Dec

// picking support
//VTK::Picking::Dec

// handle coincident offsets
//VTK::Coincident::Dec

//VTK::ZBuffer::Dec

// the output of this shader
//VTK::Output::Dec

void main()
{
  // VC position of this fragment. This should not branch/return/discard.
  //VTK::PositionVC::Impl

  // Place any calls that require uniform flow (e.g. dFdx) here.
  //VTK::UniformFlow::Impl

  // Set gl_FragDepth here (gl_FragCoord.z by default)
  //VTK::Depth::Impl

  // Early depth peeling abort:
  //VTK::DepthPeeling::PreColor

  //VTK::TCoord::Impl

  if (gl_FragData[0].a <= 0.0)
    {
    discard;
    }

  //VTK::DepthPeeling::Impl

  //VTK::Picking::Impl

  // handle coincident offsets
  //VTK::Coincident::Impl

  //VTK::ZBuffer::Impl

  //VTK::RenderPassFragmentShader::Impl
}
`;var{vtkErrorMacro:er}=Ce,hc=t=>t.split(`
`).map(e=>e.trim()).filter(Boolean);function Ih(t,e,n){return e.identity(n),t.reduce((r,a,i)=>i===0?a?e.copy(r,a):e.identity(r):a?e.multiply(r,r,a):r,n)}function LR(t,e){e.classHierarchy.push("vtkOpenGLImageResliceMapper");let n=new Map;function r(p,v){if(!v)return;let x=(n.get(v)??0)-1;x<=0?(p.unregisterGraphicsResourceUser(v,t),n.delete(v)):n.set(v,x)}function a(p,v){if(!v)return;let x=n.get(v)??0,S=x+1;n.set(v,S),x<=0&&p.registerGraphicsResourceUser(v,t)}function i(p,v,x){v!==x&&(r(p,v),a(p,x))}function s(p){[...n.keys()].forEach(v=>p.unregisterGraphicsResourceUser(v,t))}t.buildPass=p=>{if(p){e.currentRenderPass=null,e._openGLImageSlice=t.getFirstAncestorOfType("vtkOpenGLImageSlice"),e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer");let v=e._openGLRenderer.getRenderable();e._openGLCamera=e._openGLRenderer.getViewNodeFor(v.getActiveCamera(),e.openGLCamera);let x=e._openGLRenderWindow;e._openGLRenderWindow=e._openGLRenderer.getLastAncestorOfType("vtkOpenGLRenderWindow"),x&&!x.isDeleted()&&x!==e._openGLRenderWindow&&s(x),e.context=e._openGLRenderWindow.getContext(),e.tris.setOpenGLRenderWindow(e._openGLRenderWindow)}},t.translucentPass=(p,v)=>{p&&(e.currentRenderPass=v,t.render())},t.zBufferPass=p=>{p&&(e.haveSeenDepthRequest=!0,e.renderDepth=!0,t.render(),e.renderDepth=!1)},t.opaqueZBufferPass=p=>t.zBufferPass(p),t.opaquePass=p=>{p&&t.render()},t.getCoincidentParameters=(p,v)=>e.renderable.getResolveCoincidentTopology()==tt.PolygonOffset?e.renderable.getCoincidentTopologyPolygonOffsetParameters():null,t.render=()=>{let p=e._openGLImageSlice.getRenderable(),v=e._openGLRenderer.getRenderable();t.renderPiece(v,p)},t.renderPiece=(p,v)=>{t.invokeEvent({type:"StartEvent"}),e.renderable.update();let x=e.renderable.getNumberOfInputPorts();e.currentValidInputs=[];for(let d=0;d<x;++d){let C=e.renderable.getInputData(d);C&&!C.isDeleted()&&e.currentValidInputs.push({imageData:C,inputIndex:d})}let S=e.currentValidInputs.length;if(S<=0){er("No input!");return}e.labelOutlineProperties=Fh(v,e.currentValidInputs);let T=e.currentValidInputs[0].imageData.getPointData().getScalars();e.multiTexturePerVolumeEnabled=S>1,e.numberOfComponents=e.multiTexturePerVolumeEnabled?S:T.getNumberOfComponents(),t.updateResliceGeometry(),t.renderPieceStart(p,v),t.renderPieceDraw(p,v),t.renderPieceFinish(p,v),t.invokeEvent({type:"EndEvent"})},t.renderPieceStart=(p,v)=>{t.updateBufferObjects(p,v);let x=v.getProperties();e.currentValidInputs.forEach(({inputIndex:S},T)=>{let d=x[S],C=e.scalarTextures[T];!d||!C||(d.getInterpolationType()===tn.NEAREST?(C.setMinificationFilter(j.NEAREST),C.setMagnificationFilter(j.NEAREST)):(C.setMinificationFilter(j.LINEAR),C.setMagnificationFilter(j.LINEAR)))}),x[e.currentValidInputs[0].inputIndex]?.getInterpolationType()===tn.NEAREST?(e.colorTexture.setMinificationFilter(j.NEAREST),e.colorTexture.setMagnificationFilter(j.NEAREST),e.pwfTexture.setMinificationFilter(j.NEAREST),e.pwfTexture.setMagnificationFilter(j.NEAREST)):(e.colorTexture.setMinificationFilter(j.LINEAR),e.colorTexture.setMagnificationFilter(j.LINEAR),e.pwfTexture.setMinificationFilter(j.LINEAR),e.pwfTexture.setMagnificationFilter(j.LINEAR)),e.lastBoundBO=null},t.renderPieceDraw=(p,v)=>{let x=e.context,S=e.labelOutlineProperties.length>0,T=[...e.scalarTextures,e.colorTexture,e.pwfTexture];S&&(T.push(e.labelOutlineThicknessTexture),T.push(e.labelOutlineOpacityTexture)),T.forEach(d=>d.activate()),t.updateShaders(e.tris,p,v),x.drawArrays(x.TRIANGLES,0,e.tris.getCABO().getElementCount()),e.tris.getVAO().release(),T.forEach(d=>d.deactivate())},t.renderPieceFinish=(p,v)=>{},t.updateBufferObjects=(p,v)=>{t.getNeedToRebuildBufferObjects(p,v)&&t.buildBufferObjects(p,v)},t.getNeedToRebuildBufferObjects=(p,v)=>{let x=v.getProperty(e.currentValidInputs[0].inputIndex),S=e.labelOutlineProperties.length>0;return e.VBOBuildTime.getMTime()<t.getMTime()||e.VBOBuildTime.getMTime()<v.getMTime()||e.VBOBuildTime.getMTime()<e.renderable.getMTime()||e.VBOBuildTime.getMTime()<x?.getMTime()||e.currentValidInputs.some(({imageData:T})=>e.VBOBuildTime.getMTime()<T.getMTime())||e.VBOBuildTime.getMTime()<e.resliceGeom.getMTime()||e.scalarTextures.length!==e.currentValidInputs.length||!e.scalarTextures.every(T=>!!T?.getHandle())||!e.colorTexture?.getHandle()||!e.pwfTexture?.getHandle()||S&&(!e.labelOutlineThicknessTexture?.getHandle()||!e.labelOutlineOpacityTexture?.getHandle())},t.buildBufferObjects=(p,v)=>{let x=v.getProperties();e.currentValidInputs.forEach(({imageData:L,inputIndex:B},b)=>{let G=L.getPointData().getScalars(),U=e._openGLRenderWindow.getGraphicsResourceForObject(G),z=Lr(L,G),A=!U?.oglObject?.getHandle()||U?.hash!==z,Q=x[B],X=Q?.getUpdatedExtents()??[],te=!!X.length;if(A&&!te){let I=de.newInstance();I.setOpenGLRenderWindow(e._openGLRenderWindow);let oe=L.getDimensions();I.setOglNorm16Ext(e.context.getExtension("EXT_texture_norm16")),I.resetFormatAndType(),I.create3DFilterableFromDataArray({width:oe[0],height:oe[1],depth:oe[2],dataArray:G}),e._openGLRenderWindow.setGraphicsResourceForObject(G,I,z),e.scalarTextures[b]=I}else e.scalarTextures[b]=U.oglObject;if(te){Q.setUpdatedExtents([]);let I=L.getDimensions();e.scalarTextures[b].create3DFilterableFromDataArray({width:I[0],height:I[1],depth:I[2],dataArray:G,updatedExtents:X})}i(e._openGLRenderWindow,e._scalarTexturesCore[b],G),e._scalarTexturesCore[b]=G});let S=x[e.currentValidInputs[0].inputIndex];if(!S){er("Missing property for first input");return}let T=S.getIndependentComponents(),d=T?e.numberOfComponents:1,C=T?2*d:1,w=[];for(let L=0;L<d;++L)if(e.multiTexturePerVolumeEnabled){let B=e.currentValidInputs[L],b=B?x[B.inputIndex]:null;w.push(b?.getRGBTransferFunction()||null)}else w.push(S.getRGBTransferFunction(L));let D=xt(w,T,d),m=S.getRGBTransferFunction(),M=e._openGLRenderWindow.getGraphicsResourceForObject(m);if(!M?.oglObject?.getHandle()||M?.hash!==D){let L=e.renderable.getColorTextureWidth();L<=0&&(L=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let B=L*C*3,b=new Uint8ClampedArray(B),G=de.newInstance();if(G.setOpenGLRenderWindow(e._openGLRenderWindow),m){let U=new Float32Array(L*3);for(let z=0;z<d;z++){let A=w[z];if(A){let Q=A.getRange();if(A.getTable(Q[0],Q[1],L,U,1),T)for(let X=0;X<L*3;X++)b[z*L*6+X]=255*U[X],b[z*L*6+X+L*3]=255*U[X];else for(let X=0;X<L*3;X++)b[z*L*3+X]=255*U[X]}}G.resetFormatAndType(),G.create2DFromRaw({width:L,height:C,numComps:3,dataType:ee.UNSIGNED_CHAR,data:b})}else{for(let U=0;U<L*3;++U){let z=255*U/((L-1)*3);for(let A=0;A<C;++A)b[A*L*3+U+0]=z,b[A*L*3+U+1]=z,b[A*L*3+U+2]=z}G.resetFormatAndType(),G.create2DFromRaw({width:L,height:1,numComps:3,dataType:ee.UNSIGNED_CHAR,data:b})}m&&e._openGLRenderWindow.setGraphicsResourceForObject(m,G,D),e.colorTexture=G}else e.colorTexture=M.oglObject;i(e._openGLRenderWindow,e._colorTextureCore,m),e._colorTextureCore=m;let R=[];for(let L=0;L<d;++L)if(e.multiTexturePerVolumeEnabled){let B=e.currentValidInputs[L],b=B?x[B.inputIndex]:null;R.push(b?.getPiecewiseFunction()||null)}else R.push(S.getPiecewiseFunction(L));let E=xt(R,T,d),V=S.getPiecewiseFunction(),N=e._openGLRenderWindow.getGraphicsResourceForObject(V);if(!N?.oglObject?.getHandle()||N?.hash!==E){let L=e.renderable.getOpacityTextureWidth();L<=0&&(L=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let B=L*C,b=new Uint8ClampedArray(B),G=de.newInstance();if(G.setOpenGLRenderWindow(e._openGLRenderWindow),V){let U=new Float32Array(B),z=new Float32Array(L);for(let A=0;A<d;++A){let Q=R[A];if(Q===null)U.fill(1);else{let X=Q.getRange();if(Q.getTable(X[0],X[1],L,z,1),T)for(let te=0;te<L;te++)U[A*L*2+te]=z[te],U[A*L*2+te+L]=z[te];else for(let te=0;te<L;te++)U[te]=z[te]}}G.resetFormatAndType(),G.create2DFromRaw({width:L,height:C,numComps:1,dataType:ee.FLOAT,data:U})}else b.fill(255),G.resetFormatAndType(),G.create2DFromRaw({width:L,height:C,numComps:1,dataType:ee.UNSIGNED_CHAR,data:b});V&&e._openGLRenderWindow.setGraphicsResourceForObject(V,G,E),e.pwfTexture=G}else e.pwfTexture=N.oglObject;i(e._openGLRenderWindow,e._pwfTextureCore,V),e._pwfTextureCore=V,e.labelOutlineProperties.length>0&&(t.updateLabelOutlineThicknessTexture(e.labelOutlineProperties),t.updateLabelOutlineOpacityTexture(e.labelOutlineProperties));let _=`${e.resliceGeom.getMTime()}A${e.renderable.getSlabThickness()}`;if(!e.tris.getCABO().getElementCount()||e.VBOBuildString!==_){let L=Y.newInstance({numberOfComponents:3,values:e.resliceGeom.getPoints().getData()});L.setName("points");let B=be.newInstance({values:e.resliceGeom.getPolys().getData()}),b={points:L,cellOffset:0,forceFlatten:!0};if(e.renderable.getSlabThickness()>0){let G=e.resliceGeom.getPointData().getNormals();G?b.normals=G:er("Slab mode requested without normals")}e.tris.getCABO().createVBO(B,"polys",Ke.SURFACE,b)}e.VBOBuildString=_,e.VBOBuildTime.modified()},t.updateShaders=(p,v,x)=>{if(e.lastBoundBO=p,t.getNeedToRebuildShaders(p,v,x)){let S={Vertex:null,Fragment:null,Geometry:null};t.buildShaders(S,v,x);let T=e._openGLRenderWindow.getShaderCache().readyShaderProgramArray(S.Vertex,S.Fragment,S.Geometry);T!==p.getProgram()&&(p.setProgram(T),p.getVAO().releaseGraphicsResources()),p.getShaderSourceTime().modified()}else e._openGLRenderWindow.getShaderCache().readyShaderProgram(p.getProgram());p.getVAO().bind(),t.setMapperShaderParameters(p,v,x),t.setCameraShaderParameters(p,v,x),t.setPropertyShaderParameters(p,v,x)},t.setMapperShaderParameters=(p,v,x)=>{let S=p.getProgram(),T=e.currentValidInputs[0].imageData;if(p.getCABO().getElementCount()&&(e.VBOBuildTime.getMTime()>p.getAttributeUpdateTime().getMTime()||p.getShaderSourceTime().getMTime()>p.getAttributeUpdateTime().getMTime())){e.scalarTextures.forEach((C,w)=>{S.setUniformi(`volumeTexture[${w}]`,C.getTextureUnit())}),S.isAttributeUsed("vertexWC")&&(p.getVAO().addAttributeArray(S,p.getCABO(),"vertexWC",p.getCABO().getVertexOffset(),p.getCABO().getStride(),e.context.FLOAT,3,e.context.FALSE)||er("Error setting vertexWC in shader VAO.")),S.isAttributeUsed("normalWC")&&(p.getVAO().addAttributeArray(S,p.getCABO(),"normalWC",p.getCABO().getNormalOffset(),p.getCABO().getStride(),e.context.FLOAT,3,e.context.FALSE)||er("Error setting normalWC in shader VAO.")),S.isUniformUsed("slabThickness")&&S.setUniformf("slabThickness",e.renderable.getSlabThickness()),S.isUniformUsed("spacing")&&S.setUniform3fv("spacing",T.getSpacing()),S.isUniformUsed("slabType")&&S.setUniformi("slabType",e.renderable.getSlabType()),S.isUniformUsed("slabTrapezoid")&&S.setUniformi("slabTrapezoid",e.renderable.getSlabTrapezoidIntegration());let d=p.getCABO().getCoordShiftAndScaleEnabled()?p.getCABO().getInverseShiftAndScaleMatrix():null;for(let C=0;C<e.currentValidInputs.length;C++){let w=`WCTCMatrix${C}`;if(S.isUniformUsed(w)){let D=e.currentValidInputs[C].imageData,m=D.getDimensions();F.copy(e.tmpMat4,D.getIndexToWorld()),F.translate(e.tmpMat4,e.tmpMat4,[-.5,-.5,-.5]),F.scale(e.tmpMat4,e.tmpMat4,m),F.invert(e.tmpMat4,e.tmpMat4),d&&F.multiply(e.tmpMat4,e.tmpMat4,d),S.setUniformMatrix(w,e.tmpMat4)}}S.isUniformUsed("vboScaling")&&S.setUniform3fv("vboScaling",p.getCABO().getCoordScale()??[1,1,1]),p.getAttributeUpdateTime().modified()}if(e.haveSeenDepthRequest&&p.getProgram().setUniformi("depthRequest",e.renderDepth?1:0),p.getProgram().isUniformUsed("coffset")){let d=t.getCoincidentParameters(v,x);p.getProgram().setUniformf("coffset",d.offset),p.getProgram().isUniformUsed("cfactor")&&p.getProgram().setUniformf("cfactor",d.factor)}},t.setCameraShaderParameters=(p,v,x)=>{let S=e._openGLCamera.getKeyMatrices(v),T=e._openGLImageSlice.getKeyMatrices(),d=p.getCABO().getCoordShiftAndScaleEnabled()?p.getCABO().getInverseShiftAndScaleMatrix():null,C=p.getProgram();C.isUniformUsed("MCPCMatrix")&&(F.identity(e.tmpMat4),C.setUniformMatrix("MCPCMatrix",Ih([S.wcpc,T.mcwc,d],F,e.tmpMat4))),C.isUniformUsed("MCVCMatrix")&&(F.identity(e.tmpMat4),C.setUniformMatrix("MCVCMatrix",Ih([S.wcvc,T.mcwc,d],F,e.tmpMat4)))},t.setPropertyShaderParameters=(p,v,x)=>{let S=p.getProgram(),T=x.getProperty(e.currentValidInputs[0].inputIndex),d=e.multiTexturePerVolumeEnabled?1:T.getOpacity();S.setUniformf("opacity",d);let C=e.numberOfComponents,w=T.getIndependentComponents(),D=e.multiTexturePerVolumeEnabled,m=x.getProperties();if(w)for(let E=0;E<C;++E){let V=D?m[e.currentValidInputs[E].inputIndex]:T;S.setUniformf(`mix${E}`,V.getComponentWeight(0))}for(let E=0;E<C;E++){let V=D?E:0,N=D?0:E,_=e.scalarTextures[V].getVolumeInfo(),L=_.scale[N],B=_.offset[N],b=w?E:0,G=D?m[e.currentValidInputs[E].inputIndex]:T,U=G.getColorWindow(),z=G.getColorLevel(),A=G.getRGBTransferFunction(D?0:b),{colorScale:Q,colorShift:X}=Nh({colorWindow:U,colorLevel:z,useLookupTableScalarRange:G.getUseLookupTableScalarRange(),colorRange:A?.getRange?.(),volumeScale:L,volumeOffset:B});S.setUniformf(`cshift${E}`,X),S.setUniformf(`cscale${E}`,Q);let{opacityScale:te,opacityShift:I}=Bh({pwfRange:G.getPiecewiseFunction(D?0:b)?.getRange?.(),volumeScale:L,volumeOffset:B});S.setUniformf(`pwfshift${E}`,I),S.setUniformf(`pwfscale${E}`,te)}let M=e.colorTexture.getTextureUnit();S.setUniformi("colorTexture1",M);let R=e.pwfTexture.getTextureUnit();if(S.setUniformi("pwfTexture1",R),S.setUniform4fv("backgroundColor",e.renderable.getBackgroundColor()),e.labelOutlineProperties.length>0){let E=e.labelOutlineThicknessTexture.getTextureUnit();S.setUniformi("labelOutlineThicknessTexture",E);let V=e.labelOutlineOpacityTexture.getTextureUnit();S.setUniformi("labelOutlineOpacityTexture",V);let N=e.renderable.getLabelOutlineTextureWidth();N<=0&&(N=e.context.getParameter(e.context.MAX_TEXTURE_SIZE)),S.setUniformf("labelOutlineTextureWidth",N),S.setUniformf("numLabelmaps",e.labelOutlineProperties.length);let{tangent1:_,tangent2:L}=kh(e.renderable.getSlicePlane());for(let B=0;B<e.currentValidInputs.length;B++){let b=e.currentValidInputs[B].imageData,{tangent1:G,tangent2:U}=gc(b,_,L,e._tmpTexelSize),z=`outlineTangent1_${B}`,A=`outlineTangent2_${B}`;S.isUniformUsed(z)&&S.setUniform3fv(z,G),S.isUniformUsed(A)&&S.setUniform3fv(A,U)}for(let B=0;B<e.currentValidInputs.length;B++){let b=`texelSize${B}`;if(S.isUniformUsed(b)){let G=e.currentValidInputs[B].imageData,{texelSize:U}=gc(G,_,L,e._tmpTexelSize);S.setUniform3fv(b,U)}}}},t.getNeedToRebuildShaders=(p,v,x)=>{let S=x.getProperty(e.currentValidInputs[0].inputIndex).getIndependentComponents(),T=e.labelOutlineProperties.length>0,d=e.renderable.getSlabThickness(),C=e.renderable.getSlabType(),w=e.renderable.getSlabTrapezoidIntegration(),D=!1;(!e.currentRenderPass&&e.lastRenderPassShaderReplacement||e.currentRenderPass&&e.currentRenderPass.getShaderReplacement()!==e.lastRenderPassShaderReplacement)&&(D=!0);let m=e.currentValidInputs?.length??0;return D||e.lastHaveSeenDepthRequest!==e.haveSeenDepthRequest||e.lastNumberOfComponents!==e.numberOfComponents||e.lastMultiTexturePerVolumeEnabled!==e.multiTexturePerVolumeEnabled||p.getProgram()?.getHandle()===0||e.lastIndependentComponents!==S||e.lastUseLabelOutline!==T||e.lastNumValidInputs!==m||e.lastSlabThickness!==d||e.lastSlabType!==C||e.lastSlabTrapezoidIntegration!==w?(e.lastHaveSeenDepthRequest=e.haveSeenDepthRequest,e.lastNumberOfComponents=e.numberOfComponents,e.lastMultiTexturePerVolumeEnabled=e.multiTexturePerVolumeEnabled,e.lastIndependentComponents=S,e.lastUseLabelOutline=T,e.lastNumValidInputs=m,e.lastSlabThickness=d,e.lastSlabType=C,e.lastSlabTrapezoidIntegration=w,!0):!1},t.getShaderTemplate=(p,v,x)=>{p.Vertex=Ph,p.Fragment=Hh,p.Geometry=""},t.replaceShaderValues=(p,v,x)=>{if(t.replaceShaderTCoord(p,v,x),t.replaceShaderPositionVC(p,v,x),e.haveSeenDepthRequest){let S=p.Fragment;S=k.substitute(S,"//VTK::ZBuffer::Dec","uniform int depthRequest;").result,S=k.substitute(S,"//VTK::ZBuffer::Impl",["if (depthRequest == 1) {","float iz = floor(gl_FragCoord.z*65535.0 + 0.1);","float rf = floor(iz/256.0)/255.0;","float gf = mod(iz,256.0)/255.0;","gl_FragData[0] = vec4(rf, gf, 0.0, 1.0); }"]).result,p.Fragment=S}t.replaceShaderCoincidentOffset(p,v,x)};function o(p,v){let x=["r","g","b","a"],S=Array.from({length:v},(w,D)=>D).filter(w=>!p.includes(w)),T=p.map(w=>`vec3 labelTexCoord${w} = (WCTCMatrix${w} * vec4(fragWorldPos, 1.0)).xyz;`).join(`
                `),d=p.length===0?"":`float neighborLabel = ${p.map((w,D)=>D===0?`(labelInputIdx == ${D}) ? texture(volumeTexture[${w}], neighborTexCoord).r`:` : (labelInputIdx == ${D}) ? texture(volumeTexture[${w}], neighborTexCoord).r`).join("")} : 0.0;`,C=[...S,...p].map(w=>{let D=p.includes(w),m=p.indexOf(w);return D?`
        // Process input ${w} as labelmap
        {
          float labelValue = tvalue.${x[w]};
          int segmentIndex = int(labelValue * 255.0);

          if (segmentIndex > 0) {
            float textureCoordinate = float(segmentIndex - 1) / labelOutlineTextureWidth;
            float labelmapRow = (float(${m}) + 0.5) / numLabelmaps;
            float thicknessValue = texture2D(labelOutlineThicknessTexture, vec2(textureCoordinate, labelmapRow)).r;
            float labelOutlineOpacityValue = texture2D(labelOutlineOpacityTexture, vec2(textureCoordinate, labelmapRow)).r;
            int actualThickness = int(thicknessValue * 255.0);

            vec3 currentLabelTC = labelTexCoord${w};
            vec3 currentTexelSize = texelSize${w};
            vec3 currentTangent1 = outlineTangent1_${w};
            vec3 currentTangent2 = outlineTangent2_${w};

            bool pixelOnBorder = false;
            int labelInputIdx = ${m};
            for (int i = -actualThickness; i <= actualThickness; i++) {
              for (int j = -actualThickness; j <= actualThickness; j++) {
                if (i == 0 && j == 0) continue;
                vec3 neighborTexCoord = currentLabelTC + float(i) * currentTangent1 * currentTexelSize + float(j) * currentTangent2 * currentTexelSize;
                if (any(greaterThan(neighborTexCoord, vec3(1.0))) || any(lessThan(neighborTexCoord, vec3(0.0)))) {
                  pixelOnBorder = true;
                  break;
                }
                ${d}
                if (neighborLabel != labelValue) {
                  pixelOnBorder = true;
                  break;
                }
              }
              if (pixelOnBorder) break;
            }

            if (pixelOnBorder) {
              convergentColor.rgb = mix(convergentColor.rgb, tcolor${w}.rgb, labelOutlineOpacityValue);
              convergentColor.a = max(convergentColor.a, labelOutlineOpacityValue);
            } else if (compWeight${w} > 0.0) {
              float fillAlpha = compWeight${w} * opacity;
              convergentColor.rgb = mix(convergentColor.rgb, tcolor${w}.rgb, fillAlpha);
              convergentColor.a = max(convergentColor.a, fillAlpha);
            }
          }
        }`:`
        // Process input ${w} as background image
        {
          float bgAlpha = compWeight${w} * opacity;
          convergentColor.rgb = mix(convergentColor.rgb, tcolor${w}.rgb, bgAlpha);
          convergentColor.a = max(convergentColor.a, bgAlpha);
        }`}).join(`
        `);return hc(`
      // Multi-texture mode: ${p.length>0?`labelmaps at input${p.length>1?"s":""} ${p.join(", ")}`:"no labelmaps"}, ${S.length>0?`background at input${S.length>1?"s":""} ${S.join(", ")}`:"no background"}
      vec4 convergentColor = vec4(0.0, 0.0, 0.0, 0.0);

      // Compute labelmap texture coordinates
      ${T}

      // Process each input in order
      ${C}

      gl_FragData[0] = convergentColor;
    `)}function c(){return["vec4 compositeValue(vec4 currVal, vec4 valToComp, int trapezoid)","{","  vec4 retVal = vec4(1.0);","  if (slabType == 0) // min","  {","    retVal = min(currVal, valToComp);","  }","  else if (slabType == 1) // max","  {","    retVal = max(currVal, valToComp);","  }","  else if (slabType == 3) // sum","  {","    retVal = currVal + (trapezoid > 0 ? 0.5 * valToComp : valToComp); ","  }","  else // mean","  {","    retVal = currVal + (trapezoid > 0 ? 0.5 * valToComp : valToComp); ","  }","  return retVal;","}"]}function f(){return["// Get the first and last samples","int numSlices = 1;","float scaling = min(min(spacing.x, spacing.y), spacing.z) * 0.5;","vec3 slabNormal = normalize(normalWCVSOutput);","vec3 normalxspacing = scaling * slabNormal;","float distTraveled = length(normalxspacing);","int trapezoid = 0;","// Each march direction leaves the volume for good once it exits the","// unit cube (the sample positions are monotonic along a line and the","// cube is convex), so the loop can stop as soon as both directions","// have exited. Slab thicknesses larger than the volume then only cost","// the in-volume portion of the march.","bool negExited = false;","bool posExited = false;","while (distTraveled < slabThickness * 0.5)","{","  distTraveled += length(normalxspacing);","  float fnumSlices = float(numSlices);","  bool atSlabBoundary = false;","  if (distTraveled > slabThickness * 0.5)","  {","    // Before stepping outside the slab, sample at the boundaries","    normalxspacing = slabNormal * slabThickness * 0.5 / fnumSlices;","    trapezoid = slabTrapezoid;","    atSlabBoundary = true;","  }","  vec3 worldPosNeg = vertexWCVSOutput.xyz - fnumSlices * normalxspacing * vboScaling;","  vec3 fragTCoordNeg = (WCTCMatrix0 * vec4(worldPosNeg, 1.0)).xyz;","  if (!any(greaterThan(fragTCoordNeg, vec3(1.0))) && !any(lessThan(fragTCoordNeg, vec3(0.0))))","  {","    vec4 newVal = rawSampleTexture(worldPosNeg);","    tvalue = compositeValue(tvalue, newVal, trapezoid);","    numSlices += 1;","  }","  else if (!atSlabBoundary)","  {","    negExited = true;","  }","  vec3 worldPosPos = vertexWCVSOutput.xyz + fnumSlices * normalxspacing * vboScaling;","  vec3 fragTCoordPos = (WCTCMatrix0 * vec4(worldPosPos, 1.0)).xyz;","  if (!any(greaterThan(fragTCoordPos, vec3(1.0))) && !any(lessThan(fragTCoordPos, vec3(0.0))))","  {","    vec4 newVal = rawSampleTexture(worldPosPos);","    tvalue = compositeValue(tvalue, newVal, trapezoid);","    numSlices += 1;","  }","  else if (!atSlabBoundary)","  {","    posExited = true;","  }","  if (negExited && posExited) { break; }","}","// Finally, if slab type is *mean*, divide the sum by the numSlices","if (slabType == 2)","{","  tvalue = tvalue / float(numSlices);","}"]}function u(){return["// Returns a bitmask of the labels (1..31) present along the slab","// centered at startTC. Marches in texture space and exits as soon as","// the ray leaves the unit cube, so only the in-volume portion of the","// slab is sampled regardless of how large the slab thickness is.","int labelSlabMask(vec3 startTC, vec3 stepTC, float halfSlab, float stepLen)","{","  int mask = 0;","  vec3 tc = startTC;","  float dist = 0.0;","  for (int i = 0; i < 4096; ++i)","  {","    if (dist > halfSlab) { break; }","    if (any(greaterThan(tc, vec3(1.0))) || any(lessThan(tc, vec3(0.0)))) { break; }","    int label = int(texture(volumeTexture[0], tc).r * 255.0 + 0.5);","    if (label > 0 && label < 32) { mask |= (1 << label); }","    tc += stepTC;","    dist += stepLen;","  }","  tc = startTC - stepTC;","  dist = stepLen;","  for (int i = 0; i < 4096; ++i)","  {","    if (dist > halfSlab) { break; }","    if (any(greaterThan(tc, vec3(1.0))) || any(lessThan(tc, vec3(0.0)))) { break; }","    int label = int(texture(volumeTexture[0], tc).r * 255.0 + 0.5);","    if (label > 0 && label < 32) { mask |= (1 << label); }","    tc -= stepTC;","    dist += stepLen;","  }","  return mask;","}","","// Number of stepTC-sized steps from p that stay inside the unit cube","float labelSlabBoxSteps(vec3 p, vec3 stepTC)","{","  vec3 limit = vec3(65536.0);","  if (stepTC.x > 1e-8) { limit.x = (1.0 - p.x) / stepTC.x; }","  else if (stepTC.x < -1e-8) { limit.x = -p.x / stepTC.x; }","  if (stepTC.y > 1e-8) { limit.y = (1.0 - p.y) / stepTC.y; }","  else if (stepTC.y < -1e-8) { limit.y = -p.y / stepTC.y; }","  if (stepTC.z > 1e-8) { limit.z = (1.0 - p.z) / stepTC.z; }","  else if (stepTC.z < -1e-8) { limit.z = -p.z / stepTC.z; }","  return min(limit.x, min(limit.y, limit.z));","}","","// First label of labelMask found when marching the slab from its","// viewer-side end toward the back, so overlapping labels resolve in","// depth order; returns 0 when none of the mask labels is found","int labelSlabFrontLabel(vec3 startTC, vec3 towardCameraTC, float halfSlab, float stepLen, int labelMask)","{","  float slabSteps = halfSlab / stepLen;","  float nFront = min(slabSteps, labelSlabBoxSteps(startTC, towardCameraTC));","  float nBack = min(slabSteps, labelSlabBoxSteps(startTC, -towardCameraTC));","  vec3 tc = startTC + towardCameraTC * nFront;","  int totalSteps = int(nFront + nBack) + 1;","  for (int i = 0; i < 8192; ++i)","  {","    if (i >= totalSteps) { break; }","    int label = int(texture(volumeTexture[0], tc).r * 255.0 + 0.5);","    if (label > 0 && label < 32 && (labelMask & (1 << label)) != 0) { return label; }","    tc -= towardCameraTC;","  }","  return 0;","}"]}function g(){return hc(`
      // Slab-projected label outline for single component
      vec4 slabOutlineResult = vec4(0.0, 0.0, 0.0, 0.0);
      // For MAX slabs, a composited value of 0 means no label anywhere
      // along the slab, so the expensive mask marches can be skipped.
      if (slabType != 1 || tvalue.r >= 0.5 / 255.0) {
        vec3 outlineStepTC = (WCTCMatrix0 * vec4(scaling * slabNormal * vboScaling, 0.0)).xyz;
        float halfSlab = slabThickness * 0.5;
        int centerMask = labelSlabMask(fragTexCoord, outlineStepTC, halfSlab, scaling);

        if (centerMask != 0) {
          // A label is on its projected edge when present here but missing in
          // some neighbor probed at that label's own outline thickness. Labels
          // sharing a thickness reuse the same neighbor masks, so the common
          // case still costs four neighbor marches.
          float labelmapRow = 0.5 / numLabelmaps;
          int edgeLabels = 0;
          int prevThickness = -1;
          int neighborMask = 0;
          for (int s = 1; s < 32; ++s) {
            if ((centerMask & (1 << s)) == 0) { continue; }
            float thicknessCoordinate = (float(s) - 1.0) / labelOutlineTextureWidth;
            int segmentThickness = max(1, int(texture2D(labelOutlineThicknessTexture, vec2(thicknessCoordinate, labelmapRow)).r * 255.0));
            if (segmentThickness != prevThickness) {
              vec3 outlineOffset1 = outlineTangent1_0 * texelSize0 * float(segmentThickness);
              vec3 outlineOffset2 = outlineTangent2_0 * texelSize0 * float(segmentThickness);
              neighborMask =
                labelSlabMask(fragTexCoord + outlineOffset1, outlineStepTC, halfSlab, scaling) &
                labelSlabMask(fragTexCoord - outlineOffset1, outlineStepTC, halfSlab, scaling) &
                labelSlabMask(fragTexCoord + outlineOffset2, outlineStepTC, halfSlab, scaling) &
                labelSlabMask(fragTexCoord - outlineOffset2, outlineStepTC, halfSlab, scaling);
              prevThickness = segmentThickness;
            }
            if ((neighborMask & (1 << s)) == 0) { edgeLabels |= (1 << s); }
          }

          // When several edge labels compete for this fragment, the one nearest
          // the viewer along the slab wins. The camera looks down -z in view
          // coordinates, so the slab normal points toward the viewer when its
          // view-space z component is positive.
          float slabNormalTowardCamera = (MCVCMatrix * vec4(slabNormal, 0.0)).z;
          vec3 towardCameraTC = slabNormalTowardCamera > 0.0 ? outlineStepTC : -outlineStepTC;

          if (edgeLabels != 0) {
            int edgeLabel = labelSlabFrontLabel(fragTexCoord, towardCameraTC, halfSlab, scaling, edgeLabels);
            if (edgeLabel == 0) {
              // numeric fallback: smallest edge label
              for (int s = 1; s < 32; ++s) {
                if ((edgeLabels & (1 << s)) != 0) { edgeLabel = s; break; }
              }
            }
            float labelValue = float(edgeLabel) / 255.0;
            vec3 edgeColor = texture2D(colorTexture1, vec2(labelValue * cscale0 + cshift0, 0.5)).rgb;
            float opacityCoordinate = (float(edgeLabel) - 1.0) / labelOutlineTextureWidth;
            float edgeOpacity = texture2D(labelOutlineOpacityTexture, vec2(opacityCoordinate, labelmapRow)).r;
            slabOutlineResult = vec4(edgeColor, edgeOpacity);
          } else {
            // Interior of the projected labels: regular fill through the
            // transfer functions using the label nearest the viewer
            int fillLabel = labelSlabFrontLabel(fragTexCoord, towardCameraTC, halfSlab, scaling, centerMask);
            float fillValue = fillLabel != 0 ? float(fillLabel) / 255.0 : tvalue.r;
            vec3 fillColor = texture2D(colorTexture1, vec2(fillValue * cscale0 + cshift0, 0.5)).rgb;
            float fillOpacity = texture2D(pwfTexture1, vec2(fillValue * pwfscale0 + pwfshift0, 0.5)).r;
            slabOutlineResult = vec4(fillColor, fillOpacity * opacity);
          }
        }
      }
      gl_FragData[0] = slabOutlineResult;
    `)}function l(p,v){let x=[];for(let S=0;S<p;S++)v(S)&&x.push(S);return x}t.replaceShaderTCoord=(p,v,x)=>{let S=p.Vertex,T=p.Geometry,d=p.Fragment,C=e.labelOutlineProperties.length>0,w=e.renderable.getSlabThickness();S=k.substitute(S,"//VTK::TCoord::Dec",[]).result,S=k.substitute(S,"//VTK::TCoord::Impl",[]).result;let D=e.numberOfComponents,m=x.getProperty(e.currentValidInputs[0].inputIndex).getIndependentComponents(),M=e.scalarTextures.length,R=[`uniform highp sampler3D volumeTexture[${M}];`,"uniform float cshift0;","uniform float cscale0;","uniform float pwfshift0;","uniform float pwfscale0;","uniform sampler2D colorTexture1;","uniform sampler2D pwfTexture1;","uniform float opacity;","uniform vec4 backgroundColor;"];for(let V=0;V<M;V++)R.push(`uniform mat4 WCTCMatrix${V};`);if(C){R=R.concat(["uniform sampler2D labelOutlineThicknessTexture;","uniform sampler2D labelOutlineOpacityTexture;","uniform float labelOutlineTextureWidth;","uniform float numLabelmaps;"]);for(let V=0;V<M;V++)R.push(`uniform vec3 outlineTangent1_${V};`),R.push(`uniform vec3 outlineTangent2_${V};`),R.push(`uniform vec3 texelSize${V};`)}if(R.push("vec4 rawSampleTexture(vec3 worldPos) {"),!e.multiTexturePerVolumeEnabled)R.push("vec3 tc0 = (WCTCMatrix0 * vec4(worldPos, 1.0)).xyz;","return texture(volumeTexture[0], tc0);","}");else{R.push("vec4 rawSample;");for(let V=0;V<M;++V)R.push(`vec3 tc${V} = (WCTCMatrix${V} * vec4(worldPos, 1.0)).xyz;`,`rawSample[${V}] = texture(volumeTexture[${V}], tc${V})[0];`);R.push("return rawSample;","}")}if(m){for(let V=1;V<D;V++)R=R.concat([`uniform float cshift${V};`,`uniform float cscale${V};`,`uniform float pwfshift${V};`,`uniform float pwfscale${V};`]);switch(D){case 1:R=R.concat(["uniform float mix0;","#define height0 0.5"]);break;case 2:R=R.concat(["uniform float mix0;","uniform float mix1;","#define height0 0.25","#define height1 0.75"]);break;case 3:R=R.concat(["uniform float mix0;","uniform float mix1;","uniform float mix2;","#define height0 0.17","#define height1 0.5","#define height2 0.83"]);break;case 4:R=R.concat(["uniform float mix0;","uniform float mix1;","uniform float mix2;","uniform float mix3;","#define height0 0.125","#define height1 0.375","#define height2 0.625","#define height3 0.875"]);break;default:er("Unsupported number of independent coordinates.")}}w>0&&(R=R.concat(["uniform vec3 spacing;","uniform float slabThickness;","uniform int slabType;","uniform int slabTrapezoid;","uniform vec3 vboScaling;"]),R=R.concat(c()),C&&!m&&D===1&&(R=R.concat(["uniform mat4 MCVCMatrix;"]),R=R.concat(u()))),d=k.substitute(d,"//VTK::TCoord::Dec",R).result;let E=["vec3 fragWorldPos = vertexWCVSOutput.xyz;","vec3 fragTexCoord = (WCTCMatrix0 * vec4(fragWorldPos, 1.0)).xyz;","if (any(greaterThan(fragTexCoord, vec3(1.0))) || any(lessThan(fragTexCoord, vec3(0.0))))","{","  // set the background color and exit","  gl_FragData[0] = backgroundColor;","  return;","}","vec4 tvalue = rawSampleTexture(fragWorldPos);"];if(w>0&&(E=E.concat(f())),m){let V=["r","g","b","a"];for(let L=0;L<D;++L)E=E.concat([`vec3 tcolor${L} = texture2D(colorTexture1, vec2(tvalue.${V[L]} * cscale${L} + cshift${L}, height${L})).rgb;`,`float compWeight${L} = mix${L} * texture2D(pwfTexture1, vec2(tvalue.${V[L]} * pwfscale${L} + pwfshift${L}, height${L})).r;`]);let N=C?l(D,L=>x.getProperty(e.currentValidInputs[L].inputIndex)?.getUseLabelOutline()):[],_=L=>{if(L===1)return["gl_FragData[0] = vec4(tcolor0.rgb, compWeight0 * opacity);"];let B=Array.from({length:L},(U,z)=>z),b=B.map(U=>`compWeight${U}`).join(" + "),G=B.map(U=>`(tcolor${U}.rgb * (compWeight${U} / weightSum))`).join(" + ");return[`float weightSum = ${b};`,`gl_FragData[0] = vec4(vec3(${G}), opacity);`]};N.length>0?E=E.concat(o(N,D)):E=E.concat(_(D))}else switch(D){case 1:C&&w>0?E=E.concat(g()):C?E=E.concat([...hc(`
                // Label outline mode for single component
                float centerValue = tvalue.r;
                int segmentIndex = int(centerValue * 255.0);

                // Skip background (segment 0)
                if (segmentIndex == 0) {
                  gl_FragData[0] = vec4(0.0, 0.0, 0.0, 0.0);
                  return;
                }

                // Get outline parameters for this segment (row 0 for single labelmap)
                float textureCoordinate = float(segmentIndex - 1) / labelOutlineTextureWidth;
                float labelmapRow = 0.5 / numLabelmaps;
                float thicknessValue = texture2D(labelOutlineThicknessTexture, vec2(textureCoordinate, labelmapRow)).r;
                float outlineOpacity = texture2D(labelOutlineOpacityTexture, vec2(textureCoordinate, labelmapRow)).r;
                int actualThickness = int(thicknessValue * 255.0);

                // Get color for this segment
                vec3 tColor = texture2D(colorTexture1, vec2(centerValue * cscale0 + cshift0, 0.5)).rgb;
                float scalarOpacity = texture2D(pwfTexture1, vec2(centerValue * pwfscale0 + pwfshift0, 0.5)).r;
                float opacityToUse = scalarOpacity * opacity;

                // Check neighbors for border detection
                bool pixelOnBorder = false;
                for (int i = -actualThickness; i <= actualThickness; i++) {
                  for (int j = -actualThickness; j <= actualThickness; j++) {
                    if (i == 0 && j == 0) {
                      continue;
                    }
                    // Sample neighbor using tangent vectors in texture space
                    vec3 neighborTexCoord = fragTexCoord + float(i) * outlineTangent1_0 * texelSize0 + float(j) * outlineTangent2_0 * texelSize0;

                    // Skip if outside texture bounds
                    if (any(greaterThan(neighborTexCoord, vec3(1.0))) || any(lessThan(neighborTexCoord, vec3(0.0)))) {
                      pixelOnBorder = true;
                      break;
                    }

                    float neighborValue = texture(volumeTexture[0], neighborTexCoord).r;
                    if (neighborValue != centerValue) {
                      pixelOnBorder = true;
                      break;
                    }
                  }
                  if (pixelOnBorder) {
                    break;
                  }
                }

                if (pixelOnBorder) {
                  gl_FragData[0] = vec4(tColor, outlineOpacity);
                } else {
                  gl_FragData[0] = vec4(tColor, opacityToUse);
                }
              `)]):E=E.concat(["// Dependent components","float intensity = tvalue.r;","vec3 tcolor = texture2D(colorTexture1, vec2(intensity * cscale0 + cshift0, 0.5)).rgb;","float scalarOpacity = texture2D(pwfTexture1, vec2(intensity * pwfscale0 + pwfshift0, 0.5)).r;","gl_FragData[0] = vec4(tcolor, scalarOpacity * opacity);"]);break;case 2:E=E.concat(["float intensity = tvalue.r*cscale0 + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(intensity, 0.5)).rgb, pwfscale0*tvalue.g + pwfshift0);"]);break;case 3:E=E.concat(["vec4 tcolor = cscale0*tvalue + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(tcolor.r,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.g,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.b,0.5)).r, opacity);"]);break;default:E=E.concat(["vec4 tcolor = cscale0*tvalue + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(tcolor.r,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.g,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.b,0.5)).r, tcolor.a);"])}d=k.substitute(d,"//VTK::TCoord::Impl",E).result,p.Vertex=S,p.Fragment=d,p.Geometry=T},t.replaceShaderPositionVC=(p,v,x)=>{let S=p.Vertex,T=p.Geometry,d=p.Fragment,C=e.renderable.getSlabThickness(),w=["attribute vec4 vertexWC;","varying vec4 vertexWCVSOutput;"];w=w.concat([`//${t.getMTime()}${e.resliceGeomUpdateString}`]),C>0&&(w=w.concat(["attribute vec3 normalWC;","varying vec3 normalWCVSOutput;"])),S=k.substitute(S,"//VTK::PositionVC::Dec",w).result;let D=["gl_Position = MCPCMatrix * vertexWC;","vertexWCVSOutput = vertexWC;"];C>0&&(D=D.concat(["normalWCVSOutput = normalWC;"])),S=k.substitute(S,"//VTK::PositionVC::Impl",D).result,S=k.substitute(S,"//VTK::Camera::Dec",["uniform mat4 MCPCMatrix;","uniform mat4 MCVCMatrix;"]).result;let m=["varying vec4 vertexWCVSOutput;"];C>0&&(m=m.concat(["varying vec3 normalWCVSOutput;"])),d=k.substitute(d,"//VTK::PositionVC::Dec",m).result,p.Vertex=S,p.Geometry=T,p.Fragment=d},t.updateResliceGeometry=()=>{let p=e.currentValidInputs[0].imageData,{resGeomString:v,slicePD:x,slicePlane:S,orthoSlicing:T,orthoAxis:d}=zh(e.renderable,p);if(!e.resliceGeom||e.resliceGeomUpdateString!==v){if(x)e.resliceGeom||(e.resliceGeom=We.newInstance()),e.resliceGeom.getPoints().setData(x.getPoints().getData(),3),e.resliceGeom.getPolys().setData(x.getPolys().getData(),1),e.resliceGeom.getPointData().setNormals(x.getPointData().getNormals());else if(S)if(e.resliceGeom||(e.resliceGeom=We.newInstance()),T){let{points:C,polys:w,normalsData:D}=Ah(p,S,d,e.transform);e.resliceGeom.getPoints().setData(C,3),e.resliceGeom.getPolys().setData(w,1);let m=Y.newInstance({numberOfComponents:3,values:D,name:"Normals"});e.resliceGeom.getPointData().setNormals(m)}else{let{points:C,polys:w,normalsData:D}=Wh(p,S,e.outlineFilter,e.cutter,e.lineToSurfaceFilter);e.resliceGeom.getPoints().setData(C,3),e.resliceGeom.getPolys().setData(w,1);let m=Y.newInstance({numberOfComponents:3,values:D,name:"Normals"});e.resliceGeom.getPointData().setNormals(m)}else er("Something went wrong.","A default slice plane should have been created in the beginning of","updateResliceGeometry.");e.resliceGeomUpdateString=v,e.resliceGeom?.modified()}};function h(p,v,x){let{width:S,height:T}=lc(p.map(D=>({property:D})),D=>D),d=e.renderable.getLabelOutlineTextureWidth();d<=0&&(d=Math.max(S,e.context.getParameter(e.context.MAX_TEXTURE_SIZE)));let C=new v(d*T);Zi(C,p,d);let w=de.newInstance({resizable:!1});return w.setOpenGLRenderWindow(e._openGLRenderWindow),w.resetFormatAndType(),w.setMinificationFilter(j.NEAREST),w.setMagnificationFilter(j.NEAREST),w.create2DFromRaw({width:d,height:T,numComps:1,dataType:x,data:C}),w}function y(p,v,x,S,T){let{hash:d}=lc(p.map(C=>({property:C})),C=>C);d!==e[S]&&(e[S]=d,e[T]&&e[T].releaseGraphicsResources(),e[T]=h(p,v,x))}t.updateLabelOutlineThicknessTexture=p=>{y(p.map(({property:v})=>v.getLabelOutlineThicknessByReference()),Uint8Array,ee.UNSIGNED_CHAR,"_labelOutlineThicknessHash","labelOutlineThicknessTexture")},t.updateLabelOutlineOpacityTexture=p=>{y(p.map(({property:v})=>{let x=v.getLabelOutlineOpacity();return typeof x=="number"&&(x=[x]),x}),Float32Array,ee.FLOAT,"_labelOutlineOpacityHash","labelOutlineOpacityTexture")},t.setScalarTextures=p=>{e.scalarTextures=[...p],e._externalOpenGLTexture=!0},t.delete=at(()=>{e._openGLRenderWindow&&s(e._openGLRenderWindow),e.labelOutlineThicknessTexture&&(e.labelOutlineThicknessTexture.releaseGraphicsResources(),e.labelOutlineThicknessTexture=null),e.labelOutlineOpacityTexture&&(e.labelOutlineOpacityTexture.releaseGraphicsResources(),e.labelOutlineOpacityTexture=null)},t.delete)}var _R={VBOBuildTime:{},VBOBuildString:null,haveSeenDepthRequest:!1,lastHaveSeenDepthRequest:!1,lastIndependentComponents:!1,lastUseLabelOutline:!1,lastNumValidInputs:0,lastNumberOfComponents:0,lastMultiTexturePerVolumeEnabled:!1,lastSlabThickness:0,lastSlabTrapezoidIntegration:0,lastSlabType:-1,scalarTextures:[],_scalarTexturesCore:[],colorTexture:null,_colorTextureCore:null,pwfTexture:null,_pwfTextureCore:null,labelOutlineProperties:[],labelOutlineThicknessTexture:null,_labelOutlineThicknessHash:null,labelOutlineOpacityTexture:null,_labelOutlineOpacityHash:null,_externalOpenGLTexture:!1,resliceGeom:null,resliceGeomUpdateString:null,tris:null};function FR(t,e,n={}){Object.assign(e,_R,n),ue.extend(t,e,n),nt.implementReplaceShaderCoincidentOffset(t,e,n),nt.implementBuildShadersWithReplacements(t,e,n),e.tris=Ye.newInstance(),e.scalarTextures=[],e.colorTexture=null,e.pwfTexture=null,e.VBOBuildTime={},se(e.VBOBuildTime),e.tmpMat4=F.identity(new Float64Array(16)),e._tmpTexelSize=[0,0,0],e.outlineFilter=_h.newInstance(),e.outlineFilter.setGenerateFaces(!0),e.outlineFilter.setGenerateLines(!1),e.cubePolyData=We.newInstance(),e.cutter=Ch.newInstance(),e.lineToSurfaceFilter=Oh.newInstance(),e.transform=yh.newInstance(),Oe(t,e,["scalarTextures"]),LR(t,e)}var NR=J(FR,"vtkOpenGLImageResliceMapper");le("vtkImageResliceMapper",NR);function BR(t,e){e.classHierarchy.push("vtkOpenGLVolume"),t.buildPass=n=>{!e.renderable||!e.renderable.getVisibility()||n&&(e._openGLRenderWindow=t.getLastAncestorOfType("vtkOpenGLRenderWindow"),e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer"),e.context=e._openGLRenderWindow.getContext(),t.prepareNodes(),t.addMissingNode(e.renderable.getMapper()),t.removeUnusedNodes())},t.queryPass=(n,r)=>{if(n){if(!e.renderable||!e.renderable.getVisibility())return;r.incrementVolumeCount()}},t.traverseVolumePass=n=>{!e.renderable||!e.renderable.getNestedVisibility()||e._openGLRenderer.getSelector()&&!e.renderable.getNestedPickable()||(t.apply(n,!0),e.children[0].traverse(n),t.apply(n,!1))},t.volumePass=n=>{!e.renderable||!e.renderable.getVisibility()||e.context.depthMask(!n)},t.getKeyMatrices=()=>(e.renderable.getMTime()>e.keyMatrixTime.getMTime()&&(e.renderable.computeMatrix(),F.copy(e.MCWCMatrix,e.renderable.getMatrix()),F.transpose(e.MCWCMatrix,e.MCWCMatrix),e.renderable.getIsIdentity()?K.identity(e.normalMatrix):(K.fromMat4(e.normalMatrix,e.MCWCMatrix),K.invert(e.normalMatrix,e.normalMatrix),K.transpose(e.normalMatrix,e.normalMatrix)),e.keyMatrixTime.modified()),{mcwc:e.MCWCMatrix,normalMatrix:e.normalMatrix})}var GR={};function UR(t,e,n={}){Object.assign(e,GR,n),ue.extend(t,e,n),e.keyMatrixTime={},se(e.keyMatrixTime,{mtime:0}),e.normalMatrix=new Float64Array(9),e.MCWCMatrix=new Float64Array(16),ie(t,e,["context"]),BR(t,e)}var kR=J(UR,"vtkOpenGLVolume");le("vtkVolume",kR);var da={NEAREST:0,LINEAR:1,FAST_LINEAR:2},vc={FRACTIONAL:0,PROPORTIONAL:1},Ta={DEFAULT:0,ADDITIVE:1,COLORIZE:2,CUSTOM:3},dc={OFF:0,NORMALIZED:1,RAW:2},Tc={InterpolationType:da,OpacityMode:vc,ColorMixPreset:Ta,FilterMode:dc};var qe={COMPOSITE_BLEND:0,MAXIMUM_INTENSITY_BLEND:1,MINIMUM_INTENSITY_BLEND:2,AVERAGE_INTENSITY_BLEND:3,ADDITIVE_INTENSITY_BLEND:4,RADON_TRANSFORM_BLEND:5,LABELMAP_EDGE_PROJECTION_BLEND:6},jh={BlendMode:qe};function bR(t,e){e.classHierarchy.push("vtkFramebuffer");function n(){e.ownedColorBuffer&&(e._openGLRenderWindow&&!e._openGLRenderWindow.isDeleted()?e.ownedColorBuffer.releaseGraphicsResources(e._openGLRenderWindow):e.context?.deleteTexture(e.ownedColorBuffer.getHandle()),e.ownedColorBuffer.delete(),e.ownedColorBuffer=null)}function r(){n(),e.depthTexture&&(e.context?.deleteRenderbuffer(e.depthTexture),e.depthTexture=null),e.colorBuffers=[]}t.getBothMode=()=>e.context.FRAMEBUFFER,t.saveCurrentBindingsAndBuffers=a=>{let i=typeof a<"u"?a:t.getBothMode();t.saveCurrentBindings(i),t.saveCurrentBuffers(i)},t.saveCurrentBindings=a=>{if(!e.context){ce("you must set the OpenGLRenderWindow before calling saveCurrentBindings");return}e.previousDrawBinding=e.context.getParameter(e.context.FRAMEBUFFER_BINDING),e.previousActiveFramebuffer=e._openGLRenderWindow.getActiveFramebuffer()},t.saveCurrentBuffers=a=>{},t.restorePreviousBindingsAndBuffers=a=>{let i=typeof a<"u"?a:t.getBothMode();t.restorePreviousBindings(i),t.restorePreviousBuffers(i)},t.restorePreviousBindings=a=>{if(!e.context){ce("you must set the OpenGLRenderWindow before calling restorePreviousBindings");return}let i=e.context;i.bindFramebuffer(i.FRAMEBUFFER,e.previousDrawBinding),e._openGLRenderWindow.setActiveFramebuffer(e.previousActiveFramebuffer)},t.restorePreviousBuffers=a=>{},t.bind=(a=null)=>{let i=a;i===null&&(i=e.context.FRAMEBUFFER),e.context.bindFramebuffer(i,e.glFramebuffer),e.colorBuffers.forEach(s=>s?.bind()),e._openGLRenderWindow.setActiveFramebuffer(t)},t.create=(a,i)=>{if(!e.context){ce("you must set the OpenGLRenderWindow before calling create");return}let s=e.context,o=e.glFramebuffer,c=o&&s.getParameter(s.FRAMEBUFFER_BINDING)===o,f=o&&e.previousDrawBinding===o;t.releaseGraphicsResources(),e.glFramebuffer=s.createFramebuffer(),e.glFramebuffer.width=a,e.glFramebuffer.height=i,f&&(e.previousDrawBinding=e.glFramebuffer),c&&t.bind()},t.setColorBuffer=(a,i=0)=>{let s=e.context;if(!s){ce("you must set the OpenGLRenderWindow before calling setColorBuffer");return}e.colorBuffers[i]===e.ownedColorBuffer&&a!==e.ownedColorBuffer&&n();let o=s.COLOR_ATTACHMENT0;i>0&&(o+=i),e.colorBuffers[i]=a,s.framebufferTexture2D(s.FRAMEBUFFER,o,s.TEXTURE_2D,a.getHandle(),0)},t.removeColorBuffer=(a=0)=>{let i=e.context;if(!i){ce("you must set the OpenGLRenderWindow before calling removeColorBuffer");return}e.colorBuffers[a]===e.ownedColorBuffer&&n();let s=i.COLOR_ATTACHMENT0;for(a>0&&(s+=a),i.framebufferTexture2D(i.FRAMEBUFFER,s,i.TEXTURE_2D,null,0),e.colorBuffers[a]=null;e.colorBuffers.length&&e.colorBuffers[e.colorBuffers.length-1]==null;)e.colorBuffers.pop()},t.setDepthBuffer=a=>{if(!e.context){ce("you must set the OpenGLRenderWindow before calling setDepthBuffer");return}let i=e.context;i.framebufferTexture2D(i.FRAMEBUFFER,i.DEPTH_ATTACHMENT,i.TEXTURE_2D,a.getHandle(),0)},t.removeDepthBuffer=()=>{if(!e.context){ce("you must set the OpenGLRenderWindow before calling removeDepthBuffer");return}let a=e.context;a.framebufferTexture2D(a.FRAMEBUFFER,a.DEPTH_ATTACHMENT,a.TEXTURE_2D,null,0)},t.getGLFramebuffer=()=>e.glFramebuffer,t.setOpenGLRenderWindow=a=>{e._openGLRenderWindow!==a&&(t.releaseGraphicsResources(),e._openGLRenderWindow=a,e.context=null,a&&(e.context=e._openGLRenderWindow.getContext()))},t.releaseGraphicsResources=()=>{r(),e.glFramebuffer&&(e.context?.deleteFramebuffer(e.glFramebuffer),e.glFramebuffer=null)},t.getSize=()=>e.glFramebuffer==null?null:[e.glFramebuffer.width,e.glFramebuffer.height],t.populateFramebuffer=()=>{if(!e.context){ce("you must set the OpenGLRenderWindow before calling populateFrameBuffer");return}t.bind();let a=e.context;r();let i=de.newInstance();i.setOpenGLRenderWindow(e._openGLRenderWindow),i.setMinificationFilter(j.LINEAR),i.setMagnificationFilter(j.LINEAR),i.create2DFromRaw({width:e.glFramebuffer.width,height:e.glFramebuffer.height,numComps:4,dataType:ee.UNSIGNED_CHAR,data:null}),e.ownedColorBuffer=i,t.setColorBuffer(i),e.depthTexture=a.createRenderbuffer(),a.bindRenderbuffer(a.RENDERBUFFER,e.depthTexture),a.renderbufferStorage(a.RENDERBUFFER,a.DEPTH_COMPONENT16,e.glFramebuffer.width,e.glFramebuffer.height),a.framebufferRenderbuffer(a.FRAMEBUFFER,a.DEPTH_ATTACHMENT,a.RENDERBUFFER,e.depthTexture)},t.delete=at(t.releaseGraphicsResources,t.delete),t.getColorTexture=()=>e.colorBuffers[0]}var zR={glFramebuffer:null,colorBuffers:null,ownedColorBuffer:null,depthTexture:null,previousDrawBinding:0,previousReadBinding:0,previousDrawBuffer:0,previousReadBuffer:0,previousActiveFramebuffer:null};function $h(t,e,n={}){Object.assign(e,zR,n),se(t,e),e.colorBuffers&&ce("you cannot initialize colorBuffers through the constructor. You should call setColorBuffer() instead."),e.colorBuffers=[],Bn(t,e,["colorBuffers"]),bR(t,e)}var WR=J($h,"vtkFramebuffer"),xn={newInstance:WR,extend:$h};var Kh=`//VTK::System::Dec

/*=========================================================================

  Program:   Visualization Toolkit
  Module:    vtkVolumeVS.glsl

  Copyright (c) Ken Martin, Will Schroeder, Bill Lorensen
  All rights reserved.
  See Copyright.txt or http://www.kitware.com/Copyright.htm for details.

     This software is distributed WITHOUT ANY WARRANTY; without even
     the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
     PURPOSE.  See the above copyright notice for more information.

=========================================================================*/

attribute vec4 vertexDC;

varying vec3 vertexVCVSOutput;
uniform mat4 PCVCMatrix;

uniform float dcxmin;
uniform float dcxmax;
uniform float dcymin;
uniform float dcymax;

void main()
{
  // dcsmall is the device coords reduced to the
  // x y area covered by the volume
  vec4 dcsmall = vec4(
    dcxmin + 0.5 * (vertexDC.x + 1.0) * (dcxmax - dcxmin),
    dcymin + 0.5 * (vertexDC.y + 1.0) * (dcymax - dcymin),
    vertexDC.z,
    vertexDC.w);
  vec4 vcpos = PCVCMatrix * dcsmall;
  vertexVCVSOutput = vcpos.xyz/vcpos.w;
  gl_Position = dcsmall;
}
`;var Xh=`//VTK::System::Dec

/*=========================================================================

  Program:   Visualization Toolkit
  Module:    vtkVolumeFS.glsl

  Copyright (c) Ken Martin, Will Schroeder, Bill Lorensen
  All rights reserved.
  See Copyright.txt or http://www.kitware.com/Copyright.htm for details.

     This software is distributed WITHOUT ANY WARRANTY; without even
     the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
     PURPOSE.  See the above copyright notice for more information.

=========================================================================*/
// Template for the volume mappers fragment shader

const float infinity = 3.402823466e38;

// the output of this shader
//VTK::Output::Dec

in vec3 vertexVCVSOutput;

// From Sources\\Rendering\\Core\\VolumeProperty\\Constants.js
#define COMPOSITE_BLEND 0
#define MAXIMUM_INTENSITY_BLEND 1
#define MINIMUM_INTENSITY_BLEND 2
#define AVERAGE_INTENSITY_BLEND 3
#define ADDITIVE_INTENSITY_BLEND 4
#define RADON_TRANSFORM_BLEND 5
#define LABELMAP_EDGE_PROJECTION_BLEND 6

#define vtkNumberOfLights //VTK::NumberOfLights
#define vtkMaxLaoKernelSize //VTK::MaxLaoKernelSize
#define vtkNumberOfComponents //VTK::NumberOfComponents
#define vtkBlendMode //VTK::BlendMode
#define vtkMaximumNumberOfSamples //VTK::MaximumNumberOfSamples

//VTK::EnabledColorFunctions

//VTK::EnabledLightings

//VTK::EnabledMultiTexturePerVolume

//VTK::EnabledGradientOpacity

//VTK::EnabledIndependentComponents

//VTK::vtkProportionalComponents

//VTK::vtkForceNearestComponents

uniform int twoSidedLighting;

#if vtkMaxLaoKernelSize > 0
  vec2 kernelSample[vtkMaxLaoKernelSize];
#endif

// Textures
#ifdef EnabledMultiTexturePerVolume
  #define vtkNumberOfVolumeTextures vtkNumberOfComponents
#else
  #define vtkNumberOfVolumeTextures 1
#endif
uniform highp sampler3D volumeTexture[vtkNumberOfVolumeTextures];
uniform sampler2D colorTexture;
uniform sampler2D opacityTexture;
uniform sampler2D jtexture;
uniform sampler2D labelOutlineThicknessTexture;

struct Volume {
  // ---- Volume geometry settings ----

  vec3 originVC;          // in VC
  vec3 spacing;           // in VC per IC
  vec3 inverseSpacing;    // 1/spacing
  ivec3 dimensions;       // in IC
  vec3 inverseDimensions; // 1/vec3(dimensions)
  mat3 vecISToVCMatrix;   // convert from IS to VC without translation
  mat3 vecVCToISMatrix;   // convert from VC to IS without translation
  mat3 normalISToVCMatrix; // convert a normal from IS to VC
  mat4 PCWCMatrix;
  mat4 worldToIndex;
  float diagonalLength; // in VC, this is the length of the actor bounds diagonal

  // ---- Texture settings ----

  // Texture shift and scale
  vec4 colorTextureScale;
  vec4 colorTextureShift;
  vec4 opacityTextureScale;
  vec4 opacityTextureShift;

  // The heights defined below are the locations for the up to four components
  // of the transfer functions. The transfer functions have a height of (2 *
  // numberOfComponents) pixels so the values are computed to hit the middle of
  // the two rows for that component
  vec4 transferFunctionsSampleHeight;

  // ---- Mode specific settings ----

  // Independent component default preset settings per component
  vec4 independentComponentMix;

  // Additive / average blending mode settings
  vec4 ipScalarRangeMin;
  vec4 ipScalarRangeMax;

  // ---- Rendering settings ----

  // Lighting
  float ambient;
  float diffuse;
  float specular;
  float specularPower;
  int computeNormalFromOpacity;

  // Gradient opacity
  vec4 gradientOpacityScale;
  vec4 gradientOpacityShift;
  vec4 gradientOpacityMin;
  vec4 gradientOpacityMax;

  // Volume shadow
  float volumetricScatteringBlending;
  float globalIlluminationReach;
  float anisotropy;
  float anisotropySquared;

  // LAO
  int kernelSize;
  int kernelRadius;

  // Label outline
  float outlineOpacity;
};
uniform Volume volume;

struct Light {
  vec3 color;
  vec3 positionVC;
  vec3 directionVC; // normalized
  vec3 halfAngleVC;
  vec3 attenuation;
  float exponent;
  float coneAngle;
  int isPositional;
};
#if vtkNumberOfLights > 0
  uniform Light lights[vtkNumberOfLights];
#endif

uniform float vpWidth;
uniform float vpHeight;
uniform float vpOffsetX;
uniform float vpOffsetY;

// Bitmasks for label outline
const int MAX_SEGMENT_INDEX = 256; // Define as per expected maximum
#define MAX_SEGMENTS 256
#define UINT_SIZE 32
// We add UINT_SIZE - 1, as we want the ceil of the division instead of the
// floor
#define BITMASK_SIZE ((MAX_SEGMENTS + UINT_SIZE - 1) / UINT_SIZE)
uint labelOutlineBitmasks[BITMASK_SIZE];

// Set the corresponding bit in the bitmask
void setLabelOutlineBit(int segmentIndex) {
  int arrayIndex = segmentIndex / UINT_SIZE;
  int bitIndex = segmentIndex % UINT_SIZE;
  labelOutlineBitmasks[arrayIndex] |= 1u << bitIndex;
}

// Check if a bit is set in the bitmask
bool isLabelOutlineBitSet(int segmentIndex) {
  int arrayIndex = segmentIndex / UINT_SIZE;
  int bitIndex = segmentIndex % UINT_SIZE;
  return ((labelOutlineBitmasks[arrayIndex] & (1u << bitIndex)) != 0u);
}

// camera values
uniform float camThick;
uniform float camNear;
uniform float camFar;
uniform int cameraParallel;

//VTK::ClipPlane::Dec

// A random number between 0 and 1 that only depends on the fragment
// It uses the jtexture, so this random seed repeats by blocks of 32 fragments
// in screen space
float fragmentSeed;

// sample texture is global
uniform float sampleDistance;
uniform float volumeShadowSampleDistance;

// declaration for intermixed geometry
//VTK::ZBuffer::Dec

//=======================================================================
// global and custom variables (a temporary section before photorealistics
// rendering module is complete)
vec3 rayDirVC;

#define INV4PI 0.0796
#define EPSILON 0.001
#define PI 3.1415
#define PI2 9.8696

vec4 rawSampleTexture(vec3 pos) {
  #ifdef EnabledMultiTexturePerVolume
    vec4 rawSample;
    rawSample[0] = texture(volumeTexture[0], pos)[0];
    #if vtkNumberOfComponents > 1
      rawSample[1] = texture(volumeTexture[1], pos)[0];
    #endif
    #if vtkNumberOfComponents > 2
      rawSample[2] = texture(volumeTexture[2], pos)[0];
    #endif
    #if vtkNumberOfComponents > 3
      rawSample[3] = texture(volumeTexture[3], pos)[0];
    #endif
    return rawSample;
  #else
    return texture(volumeTexture[0], pos);
  #endif
}

vec4 rawFetchTexture(ivec3 pos) {
  #ifdef EnabledMultiTexturePerVolume
    vec4 rawSample;
    #if vtkNumberOfComponents > 0
      rawSample[0] = texelFetch(volumeTexture[0], pos, 0)[0];
    #endif
    #if vtkNumberOfComponents > 1
      rawSample[1] = texelFetch(volumeTexture[1], pos, 0)[0];
    #endif
    #if vtkNumberOfComponents > 2
      rawSample[2] = texelFetch(volumeTexture[2], pos, 0)[0];
    #endif
    #if vtkNumberOfComponents > 3
      rawSample[3] = texelFetch(volumeTexture[3], pos, 0)[0];
    #endif
    return rawSample;
  #else
    return texelFetch(volumeTexture[0], pos, 0);
  #endif
}

vec4 getTextureValue(vec3 pos) {
  vec4 tmp = rawSampleTexture(pos);

  // Force nearest
  #if defined(vtkComponent0ForceNearest) || \\
      defined(vtkComponent1ForceNearest) || \\
      defined(vtkComponent2ForceNearest) || \\
      defined(vtkComponent3ForceNearest)
    vec3 nearestPos = (floor(pos * vec3(volume.dimensions)) + 0.5) *
                      volume.inverseDimensions;
    vec4 nearestValue = rawSampleTexture(nearestPos);
    #ifdef vtkComponent0ForceNearest
      tmp[0] = nearestValue[0];
    #endif
    #ifdef vtkComponent1ForceNearest
      tmp[1] = nearestValue[1];
    #endif
    #ifdef vtkComponent2ForceNearest
      tmp[2] = nearestValue[2];
    #endif
    #ifdef vtkComponent3ForceNearest
      tmp[3] = nearestValue[3];
    #endif
  #endif

  // Set alpha when using dependent components
  #ifndef EnabledIndependentComponents
    #if vtkNumberOfComponents == 1
      tmp.a = tmp.r;
    #endif
    #if vtkNumberOfComponents == 2
      tmp.a = tmp.g;
    #endif
    #if vtkNumberOfComponents == 3
      tmp.a = length(tmp.rgb);
    #endif
  #endif

  return tmp;
}

// \`height\` is usually \`volume.transferFunctionsSampleHeight[component]\`
// when using independent component and \`0.5\` otherwise. Don't move the if
// statement in these function, as the callers usually already knows if it is
// using independent component or not
float getOpacityFromTexture(float scalar, int component, float height) {
  float scaledScalar = scalar * volume.opacityTextureScale[component] +
                       volume.opacityTextureShift[component];
  return texture2D(opacityTexture, vec2(scaledScalar, height)).r;
}
vec3 getColorFromTexture(float scalar, int component, float height) {
  float scaledScalar = scalar * volume.colorTextureScale[component] +
                       volume.colorTextureShift[component];
  return texture2D(colorTexture, vec2(scaledScalar, height)).rgb;
}

float getRadonOpacity(vec4 tValue) {
  #ifdef EnabledIndependentComponents
    return getOpacityFromTexture(tValue.r, 0, 0.5);
  #else
    #if vtkNumberOfComponents == 1
      return getOpacityFromTexture(tValue.r, 0, 0.5);
    #endif
    #if vtkNumberOfComponents == 2
      return getOpacityFromTexture(tValue.a, 1, 0.5);
    #endif
    #if vtkNumberOfComponents == 3
      return getOpacityFromTexture(tValue.a, 0, 0.5);
    #endif
    #if vtkNumberOfComponents == 4
      return getOpacityFromTexture(tValue.a, 3, 0.5);
    #endif
  #endif
}

vec3 getRadonColor(float normalizedRayIntensity) {
  float colorCoord = clamp(normalizedRayIntensity, 0.0, 1.0);
  return texture2D(colorTexture, vec2(colorCoord, 0.5)).rgb;
}

//=======================================================================
// transformation between VC and IS space

// convert vector position from idx to vc
vec3 posIStoVC(vec3 posIS) {
  return volume.vecISToVCMatrix * posIS + volume.originVC;
}

// convert vector position from vc to idx
vec3 posVCtoIS(vec3 posVC) {
  return volume.vecVCToISMatrix * (posVC - volume.originVC);
}

// Rotate vector to view coordinate
vec3 vecISToVC(vec3 dirIS) {
  return volume.vecISToVCMatrix * dirIS;
}

// Rotate a normal to view coordinate
// Normals use the inverse transpose transform, which is different from
// vecISToVCMatrix when the actor matrix scales or shears the volume
vec3 normalISToVC(vec3 normalIS) {
  return volume.normalISToVCMatrix * normalIS;
}

// Rotate vector to idx coordinate
vec3 vecVCToIS(vec3 dirVC) {
  return volume.vecVCToISMatrix * dirVC;
}

//=======================================================================
// Given a normal compute the gradient opacity factors
float computeGradientOpacityFactor(float normalMag, int component) {
  float goscale = volume.gradientOpacityScale[component];
  float goshift = volume.gradientOpacityShift[component];
  float gomin = volume.gradientOpacityMin[component];
  float gomax = volume.gradientOpacityMax[component];
  return clamp(normalMag * goscale + goshift, gomin, gomax);
}

#ifdef vtkClippingPlanesOn
  bool isPointClipped(vec3 posVC) {
    for (int i = 0; i < clip_numPlanes; ++i) {
      if (dot(vec3(vClipPlaneOrigins[i] - posVC), vClipPlaneNormals[i]) > 0.0) {
        return true;
      }
    }
    return false;
  }
#endif

//=======================================================================
// compute the normal and gradient magnitude for a position, uses forward
// difference

// The output normal is in VC
vec4 computeDensityNormal(vec3 opacityUCoords[2], float opacityTextureHeight,
                          float gradientOpacity, int component) {
  // Pass the scalars through the opacity functions
  vec4 opacityG;
  opacityG.x += getOpacityFromTexture(opacityUCoords[0].x, component,
                                      opacityTextureHeight);
  opacityG.y += getOpacityFromTexture(opacityUCoords[0].y, component,
                                      opacityTextureHeight);
  opacityG.z += getOpacityFromTexture(opacityUCoords[0].z, component,
                                      opacityTextureHeight);
  opacityG.x -= getOpacityFromTexture(opacityUCoords[1].x, component,
                                      opacityTextureHeight);
  opacityG.y -= getOpacityFromTexture(opacityUCoords[1].y, component,
                                      opacityTextureHeight);
  opacityG.z -= getOpacityFromTexture(opacityUCoords[1].z, component,
                                      opacityTextureHeight);

  // Divide by spacing and convert to VC
  opacityG.xyz *= gradientOpacity * volume.inverseSpacing;
  opacityG.w = length(opacityG.xyz);
  if (opacityG.w == 0.0) {
    return vec4(0.0);
  }

  // Normalize
  opacityG.xyz = normalize(normalISToVC(opacityG.xyz));

  return opacityG;
}

// The output normal is in VC
vec4 computeNormalForDensity(vec3 posIS, out vec3 scalarInterp[2],
                             const int opacityComponent) {
  vec3 offsetedPosIS;
  for (int axis = 0; axis < 3; ++axis) {
    // Positive direction
    offsetedPosIS = posIS;
    offsetedPosIS[axis] += volume.inverseDimensions[axis];
    scalarInterp[0][axis] =
        getTextureValue(offsetedPosIS)[opacityComponent];
    #ifdef vtkClippingPlanesOn
      if (isPointClipped(posIStoVC(offsetedPosIS))) {
        scalarInterp[0][axis] = 0.0;
      }
    #endif

    // Negative direction
    offsetedPosIS = posIS;
    offsetedPosIS[axis] -= volume.inverseDimensions[axis];
    scalarInterp[1][axis] =
        getTextureValue(offsetedPosIS)[opacityComponent];
    #ifdef vtkClippingPlanesOn
      if (isPointClipped(posIStoVC(offsetedPosIS))) {
        scalarInterp[1][axis] = 0.0;
      }
    #endif
  }

  vec4 result;
  result.xyz = (scalarInterp[0] - scalarInterp[1]) * volume.inverseSpacing;
  result.w = length(result.xyz);
  if (result.w == 0.0) {
    return vec4(0.0);
  }
  result.xyz = normalize(normalISToVC(result.xyz));
  return result;
}

vec4 fragCoordToPCPos(vec4 fragCoord) {
  return vec4((fragCoord.x / vpWidth - vpOffsetX - 0.5) * 2.0,
              (fragCoord.y / vpHeight - vpOffsetY - 0.5) * 2.0,
              (fragCoord.z - 0.5) * 2.0, 1.0);
}

vec4 pcPosToWorldCoord(vec4 pcPos) {
  return volume.PCWCMatrix * pcPos;
}

vec3 fragCoordToIndexSpace(vec4 fragCoord) {
  vec4 pcPos = fragCoordToPCPos(fragCoord);
  vec4 worldCoord = pcPosToWorldCoord(pcPos);
  vec4 vertex = (worldCoord / worldCoord.w);

  vec3 index = (volume.worldToIndex * vertex).xyz;

  // half voxel fix for labelmapOutline
  return (index + vec3(0.5)) * volume.inverseDimensions;
}

vec3 fragCoordToWorld(vec4 fragCoord) {
  vec4 pcPos = fragCoordToPCPos(fragCoord);
  vec4 worldCoord = pcPosToWorldCoord(pcPos);
  return worldCoord.xyz;
}

//=======================================================================
// Compute the normals and gradient magnitudes for a position for independent
// components The output normals are in VC
mat4 computeMat4Normal(vec3 posIS, vec4 tValue) {
  vec3 xvec = vec3(volume.inverseDimensions.x, 0.0, 0.0);
  vec3 yvec = vec3(0.0, volume.inverseDimensions.y, 0.0);
  vec3 zvec = vec3(0.0, 0.0, volume.inverseDimensions.z);

  vec4 distX = getTextureValue(posIS + xvec) - getTextureValue(posIS - xvec);
  vec4 distY = getTextureValue(posIS + yvec) - getTextureValue(posIS - yvec);
  vec4 distZ = getTextureValue(posIS + zvec) - getTextureValue(posIS - zvec);

  // divide by spacing
  distX *= 0.5 * volume.inverseSpacing.x;
  distY *= 0.5 * volume.inverseSpacing.y;
  distZ *= 0.5 * volume.inverseSpacing.z;

  mat4 result;

  // optionally compute the 1st component
  #if vtkNumberOfComponents > 0 && !defined(vtkComponent0Proportional)
    {
      const int component = 0;
      vec3 normal = vec3(distX[component], distY[component], distZ[component]);
      float normalLength = length(normal);
      if (normalLength > 0.0) {
        normal = normalize(normalISToVC(normal));
      }
      result[component] = vec4(normal, normalLength);
    }
  #endif

  // optionally compute the 2nd component
  #if vtkNumberOfComponents > 1 && !defined(vtkComponent1Proportional)
    {
      const int component = 1;
      vec3 normal = vec3(distX[component], distY[component], distZ[component]);
      float normalLength = length(normal);
      if (normalLength > 0.0) {
        normal = normalize(normalISToVC(normal));
      }
      result[component] = vec4(normal, normalLength);
    }
  #endif

  // optionally compute the 3rd component
  #if vtkNumberOfComponents > 2 && !defined(vtkComponent2Proportional)
    {
      const int component = 2;
      vec3 normal = vec3(distX[component], distY[component], distZ[component]);
      float normalLength = length(normal);
      if (normalLength > 0.0) {
        normal = normalize(normalISToVC(normal));
      }
      result[component] = vec4(normal, normalLength);
    }
  #endif

  // optionally compute the 4th component
  #if vtkNumberOfComponents > 3 && !defined(vtkComponent3Proportional)
    {
      const int component = 3;
      vec3 normal = vec3(distX[component], distY[component], distZ[component]);
      float normalLength = length(normal);
      if (normalLength > 0.0) {
        normal = normalize(normalISToVC(normal));
      }
      result[component] = vec4(normal, normalLength);
    }
  #endif

  return result;
}

//=======================================================================
// global shadow - secondary ray

// henyey greenstein phase function
float phaseFunction(float cos_angle) {
  // divide by 2.0 instead of 4pi to increase intensity
  float anisotropy = volume.anisotropy;
  if (abs(anisotropy) <= EPSILON) {
    // isotropic scatter returns 0.5 instead of 1/4pi to increase intensity
    return 0.5;
  }
  float anisotropy2 = volume.anisotropySquared;
  return ((1.0 - anisotropy2) /
          pow(1.0 + anisotropy2 - 2.0 * anisotropy * cos_angle, 1.5)) /
         2.0;
}

// Compute the two intersection distances of the ray with the volume in VC
// The entry point is \`rayOriginVC + distanceMin * rayDirVC\` and the exit point
// is \`rayOriginVC + distanceMax * rayDirVC\` If distanceMin < distanceMax, the
// volume is not intersected The ray origin is inside the box when distanceMin <
// 0.0 < distanceMax
vec2 rayIntersectVolumeDistances(vec3 rayOriginVC, vec3 rayDirVC) {
  // Compute origin and direction in IS
  vec3 rayOriginIS = posVCtoIS(rayOriginVC);
  vec3 rayDirIS = vecVCToIS(rayDirVC);
  // Don't check for infinity as the min/max combination afterward will always
  // find an intersection before infinity
  vec3 invDir = 1.0 / rayDirIS;

  // We have: bound = origin + t * dir
  // So: t = (1/dir) * (bound - origin)
  vec3 distancesTo0 = invDir * (vec3(0.0) - rayOriginIS);
  vec3 distancesTo1 = invDir * (vec3(1.0) - rayOriginIS);
  // Min and max distances to plane intersection per plane
  vec3 dMinPerAxis = min(distancesTo0, distancesTo1);
  vec3 dMaxPerAxis = max(distancesTo0, distancesTo1);
  // Overall first and last intersection
  float distanceMin = max(dMinPerAxis.x, max(dMinPerAxis.y, dMinPerAxis.z));
  float distanceMax = min(dMaxPerAxis.x, min(dMaxPerAxis.y, dMaxPerAxis.z));
  return vec2(distanceMin, distanceMax);
}

//=======================================================================
// local ambient occlusion
#if vtkMaxLaoKernelSize > 0

  // Return a random point on the unit sphere
  vec3 sampleDirectionUniform(int rayIndex) {
    // Each ray of each fragment should be different, two sources of randomness
    // are used. Only depends on ray index
    vec2 rayRandomness = kernelSample[rayIndex];
    // Only depends on fragment
    float fragmentRandomness = fragmentSeed;
    // Merge both source of randomness in a single uniform random variable using
    // the formula (x+y < 1 ? x+y : x+y-1). The simpler formula (x+y)/2 doesn't
    // result in a uniform distribution
    vec2 mergedRandom = rayRandomness + vec2(fragmentRandomness);
    mergedRandom -= vec2(greaterThanEqual(mergedRandom, vec2(1.0)));

    // Insipred by:
    // https://karthikkaranth.me/blog/generating-random-points-in-a-sphere/#better-choice-of-spherical-coordinates
    float u = mergedRandom[0];
    float v = mergedRandom[1];
    float theta = u * 2.0 * PI;
    float phi = acos(2.0 * v - 1.0);
    float sinTheta = sin(theta);
    float cosTheta = cos(theta);
    float sinPhi = sin(phi);
    float cosPhi = cos(phi);
    return vec3(sinPhi * cosTheta, sinPhi * sinTheta, cosPhi);
  }

  float computeLAO(vec3 posVC, vec4 normalVC, float originalOpacity) {
    // apply LAO only at selected locations, otherwise return full brightness
    if (normalVC.w <= 0.0 || originalOpacity <= 0.05) {
      return 1.0;
    }

    #ifdef EnabledGradientOpacity
      float gradientOpacityFactor = computeGradientOpacityFactor(normalVC.w, 0);
    #endif

    float visibilitySum = 0.0;
    float weightSum = 0.0;
    for (int i = 0; i < volume.kernelSize; i++) {
      // Only sample on an hemisphere around the normalVC.xyz axis, so
      // normalDotRay should be negative
      vec3 rayDirectionVC = sampleDirectionUniform(i);
      float normalDotRay = dot(normalVC.xyz, rayDirectionVC);
      if (normalDotRay > 0.0) {
        // Flip rayDirectionVC when it is in the wrong hemisphere
        rayDirectionVC = -rayDirectionVC;
        normalDotRay = -normalDotRay;
      }

      vec3 currPosIS = posVCtoIS(posVC);
      float visibility = 1.0;
      vec3 randomDirStepIS = vecVCToIS(rayDirectionVC * sampleDistance);
      for (int j = 0; j < volume.kernelRadius; j++) {
        currPosIS += randomDirStepIS;
        // If out of the volume, we are done
        if (any(lessThan(currPosIS, vec3(0.0))) ||
            any(greaterThan(currPosIS, vec3(1.0)))) {
          break;
        }
        float opacity = getOpacityFromTexture(getTextureValue(currPosIS).r, 0, 0.5);
        #ifdef EnabledGradientOpacity
          opacity *= gradientOpacityFactor;
        #endif
        visibility *= 1.0 - opacity;
        // If visibility is less than EPSILON, consider it to be 0
        if (visibility < EPSILON) {
          visibility = 0.0;
          break;
        }
      }
      float rayWeight = -normalDotRay;
      visibilitySum += visibility * rayWeight;
      weightSum += rayWeight;
    }

    // If no sample, LAO factor is one
    if (weightSum == 0.0) {
      return 1.0;
    }

    // LAO factor is the average visibility:
    // - visibility low => ambient low
    // - visibility high => ambient high
    float lao = visibilitySum / weightSum;

    // Reduce variance by clamping
    return clamp(lao, 0.3, 1.0);
  }
#endif

//=======================================================================
// Volume shadows
#if vtkNumberOfLights > 0

  // Non-memoised version
  float computeVolumeShadowWithoutCache(vec3 posVC, vec3 lightDirNormVC) {
    // modify sample distance with a random number between 1.5 and 3.0
    float rayStepLength =
        volumeShadowSampleDistance * mix(1.5, 3.0, fragmentSeed);

    // in case the first sample near surface has a very tiled light ray, we need
    // to offset start position
    vec3 initialPosVC = posVC + rayStepLength * lightDirNormVC;

    #ifdef vtkClippingPlanesOn
      float clippingPlanesMaxDistance = infinity;
      for (int i = 0; i < clip_numPlanes; ++i) {
        // Find distance of intersection with the plane
        // Points are clipped when:
        // dot(planeOrigin - (rayOrigin + distance * rayDirection), planeNormal) > 0
        // This is equivalent to:
        // dot(planeOrigin - rayOrigin, planeNormal) - distance * dot(rayDirection,
        // planeNormal) > 0.0
        // We precompute the dot products, so we clip ray points when:
        // dotOrigin - distance * dotDirection > 0.0
        float dotOrigin =
            dot(vClipPlaneOrigins[i] - initialPosVC, vClipPlaneNormals[i]);
        if (dotOrigin > 0.0) {
          // The initialPosVC is clipped by this plane
          return 1.0;
        }
        float dotDirection = dot(lightDirNormVC, vClipPlaneNormals[i]);
        if (dotDirection < 0.0) {
          // We only hit the plane if dotDirection is negative, as (distance is
          // positive)
          float intersectionDistance =
              dotOrigin / dotDirection; // negative divided by negative => positive
          clippingPlanesMaxDistance =
              min(clippingPlanesMaxDistance, intersectionDistance);
        }
      }
    #endif

    vec2 intersectionDistances =
        rayIntersectVolumeDistances(initialPosVC, lightDirNormVC);

    if (intersectionDistances[1] <= intersectionDistances[0] ||
        intersectionDistances[1] <= 0.0) {
      // Volume not hit or behind the ray
      return 1.0;
    }

    // When globalIlluminationReach is 0, no sample at all
    // When globalIlluminationReach is 1, the ray will go through the whole
    // volume
    float maxTravelDistance = mix(0.0, volume.diagonalLength,
                                  volume.globalIlluminationReach);
    float startDistance = max(intersectionDistances[0], 0.0);
    float endDistance = min(intersectionDistances[1], startDistance + maxTravelDistance);
    #ifdef vtkClippingPlanesOn
      endDistance = min(endDistance, clippingPlanesMaxDistance);
    #endif
    if (endDistance - startDistance < 0.0) {
      return 1.0;
    }

    // These two variables are used to compute posIS, without having to call
    // VCtoIS at each step
    vec3 initialPosIS = posVCtoIS(initialPosVC);
    // The light dir is scaled and rotated, but not translated, as it is a
    // vector (w = 0)
    vec3 scaledLightDirIS = vecVCToIS(lightDirNormVC);

    float shadow = 1.0;
    for (float currentDistance = startDistance; currentDistance <= endDistance;
          currentDistance += rayStepLength) {
      vec3 posIS = initialPosIS + currentDistance * scaledLightDirIS;
      vec4 scalar = getTextureValue(posIS);
      float opacity = getOpacityFromTexture(scalar.r, 0, 0.5);
      #if defined(EnabledGradientOpacity) && !defined(EnabledIndependentComponents)
        vec3 scalarInterp[2];
        vec4 normal = computeNormalForDensity(posIS, scalarInterp, 3);
        float opacityFactor = computeGradientOpacityFactor(normal.w, 0);
        opacity *= opacityFactor;
      #endif
      shadow *= 1.0 - opacity;

      // Early termination if shadow coeff is near 0.0
      if (shadow < EPSILON) {
        return 0.0;
      }
    }
    return shadow;
  }

  // Some cache for volume shadows
  struct {
    vec3 posVC;
    float shadow;
  } cachedShadows[vtkNumberOfLights];

  // Memoised version
  float computeVolumeShadow(vec3 posVC, vec3 lightDirNormVC, int lightIdx) {
    if (posVC == cachedShadows[lightIdx].posVC) {
      return cachedShadows[lightIdx].shadow;
    }
    float shadow = computeVolumeShadowWithoutCache(posVC, lightDirNormVC);
    cachedShadows[lightIdx].posVC = posVC;
    cachedShadows[lightIdx].shadow = shadow;
    return shadow;
  }

#endif

//=======================================================================
// surface light contribution
#if vtkNumberOfLights > 0
  vec3 applyLighting(vec3 tColor, vec4 normalVC) {
    vec3 diffuse = vec3(0.0, 0.0, 0.0);
    vec3 specular = vec3(0.0, 0.0, 0.0);
    for (int lightIdx = 0; lightIdx < vtkNumberOfLights; lightIdx++) {
      float df = dot(normalVC.xyz, lights[lightIdx].directionVC);
      if (df > 0.0) {
        diffuse += df * lights[lightIdx].color;
        float sf = dot(normalVC.xyz, -lights[lightIdx].halfAngleVC);
        if (sf > 0.0) {
          specular += pow(sf, volume.specularPower) * lights[lightIdx].color;
        }
      }
    }
    return tColor * (diffuse * volume.diffuse + volume.ambient) +
          specular * volume.specular;
  }

  vec3 applySurfaceShadowLighting(vec3 tColor, float alpha, vec3 posVC,
                                  vec4 normalVC) {
    // everything in VC
    vec3 diffuse = vec3(0.0);
    vec3 specular = vec3(0.0);
    for (int ligthIdx = 0; ligthIdx < vtkNumberOfLights; ligthIdx++) {
      vec3 vertLightDirection;
      float attenuation;
      if (lights[ligthIdx].isPositional == 1) {
        vertLightDirection = posVC - lights[ligthIdx].positionVC;
        float lightDistance = length(vertLightDirection);
        // Normalize with precomputed length
        vertLightDirection = vertLightDirection / lightDistance;
        // Base attenuation
        vec3 attenuationPolynom = lights[ligthIdx].attenuation;
        attenuation =
            1.0 / (attenuationPolynom[0] +
                  lightDistance * (attenuationPolynom[1] +
                                    lightDistance * attenuationPolynom[2]));
        // Cone attenuation
        float coneDot = dot(vertLightDirection, lights[ligthIdx].directionVC);
        // Per OpenGL standard cone angle is 90 or less for a spot light
        if (lights[ligthIdx].coneAngle <= 90.0) {
          if (coneDot >= cos(radians(lights[ligthIdx].coneAngle))) {
            // Inside the cone
            attenuation *= pow(coneDot, lights[ligthIdx].exponent);
          } else {
            // Outside the cone
            attenuation = 0.0;
          }
        }
      } else {
        vertLightDirection = lights[ligthIdx].directionVC;
        attenuation = 1.0;
      }

      float ndotL = dot(normalVC.xyz, vertLightDirection);
      if (ndotL < 0.0 && twoSidedLighting == 1) {
        ndotL = -ndotL;
      }
      if (ndotL > 0.0) {
        // Diffuse
        diffuse += ndotL * attenuation * lights[ligthIdx].color;
        // Specular
        float vdotR =
            dot(-rayDirVC, normalize(vertLightDirection - 2.0 * ndotL * normalVC.xyz));
        if (vdotR > 0.0) {
          specular += pow(vdotR, volume.specularPower) * attenuation *
                      lights[ligthIdx].color;
        }
      }
    }
    #if vtkMaxLaoKernelSize > 0
      float laoFactor = computeLAO(posVC, normalVC, alpha);
    #else
      const float laoFactor = 1.0;
    #endif
    return tColor * (diffuse * volume.diffuse +
                    volume.ambient * laoFactor) +
          specular * volume.specular;
  }

  vec3 applyVolumeShadowLighting(vec3 tColor, vec3 posVC) {
    // Here we have no effect of cones and no attenuation
    vec3 diffuse = vec3(0.0);
    for (int lightIdx = 0; lightIdx < vtkNumberOfLights; lightIdx++) {
      vec3 lightDirVC = lights[lightIdx].isPositional == 1
                            ? normalize(lights[lightIdx].positionVC - posVC)
                            : -lights[lightIdx].directionVC;
      float shadowCoeff = computeVolumeShadow(posVC, lightDirVC, lightIdx);
      float phaseAttenuation = phaseFunction(dot(rayDirVC, lightDirVC));
      diffuse += phaseAttenuation * shadowCoeff * lights[lightIdx].color;
    }
    return tColor * (diffuse * volume.diffuse + volume.ambient);
  }
#endif

// LAO of surface shadows and volume shadows only work with dependent components
vec3 applyAllLightning(vec3 tColor, float alpha, vec3 posVC,
                       vec4 surfaceNormalVC) {
  #if vtkNumberOfLights > 0
    // 0 <= volCoeff < EPSILON => only surface shadows
    // EPSILON <= volCoeff < 1 - EPSILON => mix of surface and volume shadows
    // 1 - EPSILON <= volCoeff => only volume shadows
    float volCoeff = volume.volumetricScatteringBlending *
                    (1.0 - alpha / 2.0) *
                    (1.0 - atan(surfaceNormalVC.w) * INV4PI);

    // Compute surface lighting if needed
    vec3 surfaceShadedColor = tColor;
    #ifdef EnableSurfaceLighting
      if (volCoeff < 1.0 - EPSILON) {
        surfaceShadedColor =
            applySurfaceShadowLighting(tColor, alpha, posVC, surfaceNormalVC);
      }
    #endif

    // Compute volume lighting if needed
    vec3 volumeShadedColor = tColor;
    #ifdef EnableVolumeLighting
      if (volCoeff >= EPSILON) {
        volumeShadedColor = applyVolumeShadowLighting(tColor, posVC);
      }
    #endif

    // Return the right mix
    if (volCoeff < EPSILON) {
      // Surface shadows
      return surfaceShadedColor;
    }
    if (volCoeff >= 1.0 - EPSILON) {
      // Volume shadows
      return volumeShadedColor;
    }
    // Mix of surface and volume shadows
    return mix(surfaceShadedColor, volumeShadedColor, volCoeff);
  #endif
  return tColor;
}

vec4 getColorForLabelOutline() {
  vec3 centerPosIS =
      fragCoordToIndexSpace(gl_FragCoord); // pos in texture space
  vec4 centerValue = getTextureValue(centerPosIS);
  bool pixelOnBorder = false;
  vec4 tColor = vec4(getColorFromTexture(centerValue.r, 0, 0.5),
                     getOpacityFromTexture(centerValue.r, 0, 0.5));

  int segmentIndex = int(centerValue.r * 255.0);

  // Use texture sampling for outlineThickness
  float textureCoordinate = float(segmentIndex - 1) / 1024.0;
  float textureValue =
      texture2D(labelOutlineThicknessTexture, vec2(textureCoordinate, 0.5)).r;
  int actualThickness = int(textureValue * 255.0);

  // If it is the background (segment index 0), we should quickly bail out.
  // Previously, this was determined by tColor.a, which was incorrect as it
  // prevented the outline from appearing when the fill is 0.
  if (segmentIndex == 0) {
    return vec4(0, 0, 0, 0);
  }

  // Only perform outline check on fragments rendering voxels that aren't
  // invisible. Saves a bunch of needless checks on the background.
  // TODO define epsilon when building shader?
  for (int i = -actualThickness; i <= actualThickness; i++) {
    for (int j = -actualThickness; j <= actualThickness; j++) {
      if (i == 0 && j == 0) {
        continue;
      }

      vec4 neighborPixelCoord =
          vec4(gl_FragCoord.x + float(i), gl_FragCoord.y + float(j),
               gl_FragCoord.z, gl_FragCoord.w);

      vec3 neighborPosIS = fragCoordToIndexSpace(neighborPixelCoord);
      vec4 value = getTextureValue(neighborPosIS);

      // If any of my neighbours are not the same value as I
      // am, this means I am on the border of the segment.
      // We can break the loops
      if (any(notEqual(value, centerValue))) {
        pixelOnBorder = true;
        break;
      }
    }

    if (pixelOnBorder == true) {
      break;
    }
  }

  // If I am on the border, I am displayed at full opacity
  if (pixelOnBorder == true) {
    tColor.a = volume.outlineOpacity;
  }

  return tColor;
}

vec4 getColorForAdditivePreset(vec4 tValue, vec3 posVC, vec3 posIS) {
  // compute normals
  mat4 normalMat = computeMat4Normal(posIS, tValue);
  vec4 normalLights[2];
  normalLights[0] = normalMat[0];
  normalLights[1] = normalMat[1];
  #if vtkNumberOfLights > 0
    if (volume.computeNormalFromOpacity == 1) {
      for (int component = 0; component < 2; ++component) {
        vec3 scalarInterp[2];
        float height = volume.transferFunctionsSampleHeight[component];
        computeNormalForDensity(posIS, scalarInterp, component);
        normalLights[component] =
            computeDensityNormal(scalarInterp, height, 1.0, component);
      }
    }
  #endif

  // compute opacities
  float opacities[2];
  opacities[0] = getOpacityFromTexture(
      tValue[0], 0, volume.transferFunctionsSampleHeight[0]);
  opacities[1] = getOpacityFromTexture(
      tValue[1], 1, volume.transferFunctionsSampleHeight[1]);
  #ifdef EnabledGradientOpacity
    for (int component = 0; component < 2; ++component) {
      opacities[component] *=
          computeGradientOpacityFactor(normalMat[component].a, component);
    }
  #endif
  float opacitySum = opacities[0] + opacities[1];
  if (opacitySum <= 0.0) {
    return vec4(0.0);
  }

  // mix the colors and opacities
  vec3 colors[2];
  for (int component = 0; component < 2; ++component) {
    float sampleHeight = volume.transferFunctionsSampleHeight[component];
    vec3 color = getColorFromTexture(tValue[component], component, sampleHeight);
    color = applyAllLightning(color, opacities[component], posVC,
                              normalLights[component]);
    colors[component] = color;
  }
  vec3 mixedColor =
      (opacities[0] * colors[0] + opacities[1] * colors[1]) / opacitySum;
  return vec4(mixedColor, min(1.0, opacitySum));
}

vec4 getColorForColorizePreset(vec4 tValue, vec3 posVC, vec3 posIS) {
  // compute normals
  mat4 normalMat = computeMat4Normal(posIS, tValue);
  vec4 normalLight = normalMat[0];
  #if vtkNumberOfLights > 0
    if (volume.computeNormalFromOpacity == 1) {
      vec3 scalarInterp[2];
      float height = volume.transferFunctionsSampleHeight[0];
      computeNormalForDensity(posIS, scalarInterp, 0);
      normalLight = computeDensityNormal(scalarInterp, height, 1.0, 0);
    }
  #endif

  // compute opacities
  float opacity = getOpacityFromTexture(
      tValue[0], 0, volume.transferFunctionsSampleHeight[0]);
  #ifdef EnabledGradientOpacity
    opacity *= computeGradientOpacityFactor(normalMat[0].a, 0);
  #endif

  // colorizing component
  vec3 colorizingColor = getColorFromTexture(
      tValue[0], 1, volume.transferFunctionsSampleHeight[1]);
  float colorizingOpacity = getOpacityFromTexture(
      tValue[1], 1, volume.transferFunctionsSampleHeight[1]);

  // mix the colors and opacities
  vec3 color =
      getColorFromTexture(tValue[0], 0,
                          volume.transferFunctionsSampleHeight[0]) *
      mix(vec3(1.0), colorizingColor, colorizingOpacity);
  color = applyAllLightning(color, opacity, posVC, normalLight);
  return vec4(color, opacity);
}

vec4 getColorForDefaultIndependentPreset(vec4 tValue, vec3 posIS) {

  // compute the normal vectors as needed
  #if defined(EnabledGradientOpacity) || vtkNumberOfLights > 0
    mat4 normalMat = computeMat4Normal(posIS, tValue);
  #endif

  // process color and opacity for each component
  // initial value of alpha is determined by wether the first component is
  // proportional or not
  #if defined(vtkComponent0Proportional)
    // when it is proportional, it starts at 1 (neutral for multiplications)
    float alpha = 1.0;
  #else
    // when it is not proportional, it starts at 0 (neutral for additions)
    float alpha = 0.0;
  #endif

  vec3 mixedColor = vec3(0.0);
  #if vtkNumberOfComponents > 0
    {
      const int component = 0;
      vec3 color = getColorFromTexture(
          tValue[component], component,
          volume.transferFunctionsSampleHeight[component]);
      float opacity = getOpacityFromTexture(
          tValue[component], component,
          volume.transferFunctionsSampleHeight[component]);
      #if !defined(vtkComponent0Proportional)
        float alphaContribution = volume.independentComponentMix[component] * opacity;
        #ifdef EnabledGradientOpacity
          alphaContribution *= computeGradientOpacityFactor(normalMat[component].a, component);
        #endif
        alpha += alphaContribution;
        #if vtkNumberOfLights > 0
          color = applyLighting(color, normalMat[component]);
        #endif
      #else
        color *= opacity;
        alpha *= mix(opacity, 1.0,
                    (1.0 - volume.independentComponentMix[component]));
      #endif
      mixedColor += volume.independentComponentMix[component] * color;
    }
  #endif
  #if vtkNumberOfComponents > 1
    {
      const int component = 1;
      vec3 color = getColorFromTexture(
          tValue[component], component,
          volume.transferFunctionsSampleHeight[component]);
      float opacity = getOpacityFromTexture(
          tValue[component], component,
          volume.transferFunctionsSampleHeight[component]);
      #if !defined(vtkComponent1Proportional)
        float alphaContribution = volume.independentComponentMix[component] * opacity;
        #ifdef EnabledGradientOpacity
          alphaContribution *= computeGradientOpacityFactor(normalMat[component].a, component);
        #endif
        alpha += alphaContribution;
        #if vtkNumberOfLights > 0
          color = applyLighting(color, normalMat[component]);
        #endif
      #else
        color *= opacity;
        alpha *= mix(opacity, 1.0,
                    (1.0 - volume.independentComponentMix[component]));
      #endif
      mixedColor += volume.independentComponentMix[component] * color;
    }
  #endif
  #if vtkNumberOfComponents > 2
    {
      const int component = 2;
      vec3 color = getColorFromTexture(
          tValue[component], component,
          volume.transferFunctionsSampleHeight[component]);
      float opacity = getOpacityFromTexture(
          tValue[component], component,
          volume.transferFunctionsSampleHeight[component]);
      #if !defined(vtkComponent2Proportional)
        float alphaContribution = volume.independentComponentMix[component] * opacity;
        #ifdef EnabledGradientOpacity
          alphaContribution *= computeGradientOpacityFactor(normalMat[component].a, component);
        #endif
        alpha += alphaContribution;
        #if vtkNumberOfLights > 0
          color = applyLighting(color, normalMat[component]);
        #endif
      #else
        color *= opacity;
        alpha *= mix(opacity, 1.0,
                    (1.0 - volume.independentComponentMix[component]));
      #endif
      mixedColor += volume.independentComponentMix[component] * color;
    }
  #endif
  #if vtkNumberOfComponents > 3
    {
      const int component = 3;
      vec3 color = getColorFromTexture(
          tValue[component], component,
          volume.transferFunctionsSampleHeight[component]);
      float opacity = getOpacityFromTexture(
          tValue[component], component,
          volume.transferFunctionsSampleHeight[component]);
      #if !defined(vtkComponent3Proportional)
        float alphaContribution = volume.independentComponentMix[component] * opacity;
        #ifdef EnabledGradientOpacity
          alphaContribution *= computeGradientOpacityFactor(normalMat[component].a, component);
        #endif
        alpha += alphaContribution;
        #if vtkNumberOfLights > 0
          color = applyLighting(color, normalMat[component]);
        #endif
      #else
        color *= opacity;
        alpha *= mix(opacity, 1.0,
                    (1.0 - volume.independentComponentMix[component]));
      #endif
      mixedColor += volume.independentComponentMix[component] * color;
    }
  #endif

  return vec4(mixedColor, alpha);
}

vec4 getColorForDependentComponents(vec4 tValue, vec3 posVC, vec3 posIS) {
  #if defined(EnabledGradientOpacity) || vtkNumberOfLights > 0
    // use component 3 of the opacity texture as getTextureValue() sets alpha to
    // the opacity value
    vec3 scalarInterp[2];
    vec4 normal0 = computeNormalForDensity(posIS, scalarInterp, 3);
    float gradientOpacity = computeGradientOpacityFactor(normal0.a, 0);
  #endif

  // get color and opacity
  #if vtkNumberOfComponents == 1
    vec3 tColor = getColorFromTexture(tValue.r, 0, 0.5);
    float alpha = getOpacityFromTexture(tValue.r, 0, 0.5);
  #endif
  #if vtkNumberOfComponents == 2
    vec3 tColor = vec3(tValue.r * volume.colorTextureScale[0] +
                  volume.colorTextureShift[0]);
    float alpha = getOpacityFromTexture(tValue.a, 1, 0.5);
  #endif
  #if vtkNumberOfComponents == 3
      vec3 tColor = tValue.rgb * volume.colorTextureScale.rgb +
              volume.colorTextureShift.rgb;
      float alpha = getOpacityFromTexture(tValue.a, 0, 0.5);
  #endif
  #if vtkNumberOfComponents == 4
      vec3 tColor = tValue.rgb * volume.colorTextureScale.rgb +
              volume.colorTextureShift.rgb;
      float alpha = getOpacityFromTexture(tValue.a, 3, 0.5);
  #endif

  // Apply gradient opacity
  #if defined(EnabledGradientOpacity)
    alpha *= gradientOpacity;
  #endif

  #if vtkNumberOfComponents == 1
    if (alpha < EPSILON) {
      return vec4(0.0);
    }
  #endif

  // lighting
  #if vtkNumberOfLights > 0
    vec4 normalLight;
    if (volume.computeNormalFromOpacity == 1) {
      if (normal0[3] != 0.0) {
        normalLight =
            computeDensityNormal(scalarInterp, 0.5, gradientOpacity, 0);
        if (normalLight[3] == 0.0) {
          normalLight = normal0;
        }
      }
    } else {
      normalLight = normal0;
    }
    tColor = applyAllLightning(tColor, alpha, posVC, normalLight);
  #endif

  return vec4(tColor, alpha);
}

vec4 getColorForValue(vec4 tValue, vec3 posVC, vec3 posIS) {
  #ifdef EnableColorForValueFunctionId0
    return getColorForDependentComponents(tValue, posVC, posIS);
  #endif

  #ifdef EnableColorForValueFunctionId1
    return getColorForAdditivePreset(tValue, posVC, posIS);
  #endif

  #ifdef EnableColorForValueFunctionId2
    return getColorForColorizePreset(tValue, posVC, posIS);
  #endif

  #ifdef EnableColorForValueFunctionId3
    /*
      * Mix the color information from all the independent components to get a
      * single rgba output. See other shader functions like
      * \`getColorForAdditivePreset\` to learn how to create a custom color mix.
      * The custom color mix should return a value, but if it doesn't, it will
      * fallback on the default shading
      */
    //VTK::CustomColorMix
  #endif

  #if defined(EnableColorForValueFunctionId4) || defined(EnableColorForValueFunctionId3)
    return getColorForDefaultIndependentPreset(tValue, posIS);
  #endif

  #ifdef EnableColorForValueFunctionId5
    return getColorForLabelOutline();
  #endif
}

bool valueWithinScalarRange(vec4 val) {
  #if vtkNumberOfComponents > 1 && !defined(EnabledIndependentComponents)
    return false;
  #endif
  vec4 rangeMin = volume.ipScalarRangeMin;
  vec4 rangeMax = volume.ipScalarRangeMax;
  for (int component = 0; component < vtkNumberOfComponents; ++component) {
    if (val[component] < rangeMin[component] ||
        rangeMax[component] < val[component]) {
      return false;
    }
  }
  return true;
}

#if vtkBlendMode == LABELMAP_EDGE_PROJECTION_BLEND
  bool checkOnEdgeForNeighbor(int xFragmentOffset, int yFragmentOffset,
                              int segmentIndex, vec3 stepIS) {
    vec3 volumeDimensions = vec3(volume.dimensions);
    vec4 neighborPixelCoord = vec4(gl_FragCoord.x + float(xFragmentOffset),
                                  gl_FragCoord.y + float(yFragmentOffset),
                                  gl_FragCoord.z, gl_FragCoord.w);
    vec3 originalNeighborPosIS = fragCoordToIndexSpace(neighborPixelCoord);

    vec3 neighborPosIS = originalNeighborPosIS;
    for (int k = 0; k < vtkMaximumNumberOfSamples / 2; ++k) {
      ivec3 texCoord = ivec3(neighborPosIS * volumeDimensions);
      vec4 texValue = rawFetchTexture(texCoord);
      if (int(texValue.g) == segmentIndex) {
        // not on edge
        return false;
      }
      neighborPosIS += stepIS;
    }

    neighborPosIS = originalNeighborPosIS;
    for (int k = 0; k < vtkMaximumNumberOfSamples / 2; ++k) {
      ivec3 texCoord = ivec3(neighborPosIS * volumeDimensions);
      vec4 texValue = rawFetchTexture(texCoord);
      if (int(texValue.g) == segmentIndex) {
        // not on edge
        return false;
      }
      neighborPosIS -= stepIS;
    }

    // onedge
    float sampleHeight = volume.transferFunctionsSampleHeight[1];
    vec3 tColorSegment =
        getColorFromTexture(float(segmentIndex), 1, sampleHeight);
    float pwfValueSegment =
        getOpacityFromTexture(float(segmentIndex), 1, sampleHeight);
    gl_FragData[0] = vec4(tColorSegment, pwfValueSegment);
    return true;
  }
#endif

vec4 getColorAtPos(vec3 posVC) {
  vec3 posIS = posVCtoIS(posVC);
  vec4 texValue = getTextureValue(posIS);
  return getColorForValue(texValue, posVC, posIS);
}

//=======================================================================
// Apply the specified blend mode operation along the ray's path.
//
void applyBlend(vec3 rayOriginVC, vec3 rayDirVC, float minDistance,
                float maxDistance) {
  // start slightly inside and apply some jitter
  vec3 stepVC = rayDirVC * sampleDistance;
  float raySteps = (maxDistance - minDistance) / sampleDistance;

  // Avoid 0.0 jitter
  float jitter = 0.01 + 0.99 * fragmentSeed;

  #if vtkBlendMode == COMPOSITE_BLEND
    // now map through opacity and color
    vec3 firstPosVC = rayOriginVC + minDistance * rayDirVC;
    vec4 firstColor = getColorAtPos(firstPosVC);

    // handle very thin volumes
    if (raySteps <= 1.0) {
      firstColor.a = 1.0 - pow(1.0 - firstColor.a, raySteps);
      gl_FragData[0] = firstColor;
      return;
    }

    // first color only counts for \`jitter\` factor of the step
    firstColor.a = 1.0 - pow(1.0 - firstColor.a, jitter);
    vec4 color = vec4(firstColor.rgb * firstColor.a, firstColor.a);
    vec3 posVC = firstPosVC + jitter * stepVC;
    float stepsTraveled = jitter;

    for (int i = 0; i < vtkMaximumNumberOfSamples; ++i) {
      // If we have reached the last step, break
      if (stepsTraveled + 1.0 >= raySteps) {
        break;
      }
      vec4 tColor = getColorAtPos(posVC);

      color = color + vec4(tColor.rgb * tColor.a, tColor.a) * (1.0 - color.a);
      stepsTraveled++;
      posVC += stepVC;
      if (color.a > 0.99) {
        color.a = 1.0;
        break;
      }
    }

    if (color.a < 0.99 && (raySteps - stepsTraveled) > 0.0) {
      vec3 endPosVC = rayOriginVC + maxDistance * rayDirVC;
      vec4 tColor = getColorAtPos(endPosVC);
      tColor.a = 1.0 - pow(1.0 - tColor.a, raySteps - stepsTraveled);

      float mix = (1.0 - color.a);
      color = color + vec4(tColor.rgb * tColor.a, tColor.a) * mix;
    }

    gl_FragData[0] = vec4(color.rgb / color.a, color.a);
  #endif

  #if vtkBlendMode == MAXIMUM_INTENSITY_BLEND ||                                 \\
      vtkBlendMode == MINIMUM_INTENSITY_BLEND
    // Find maximum/minimum intensity along the ray.

    // Define the operation we will use (min or max)
    #if vtkBlendMode == MAXIMUM_INTENSITY_BLEND
      #define OP max
    #else
      #define OP min
    #endif

    vec3 posVC = rayOriginVC + minDistance * rayDirVC;
    float stepsTraveled = 0.0;

    // Find a value to initialize the selected variables
    vec4 selectedValue;
    vec3 selectedPosVC;
    vec3 selectedPosIS;
    {
      vec3 posIS = posVCtoIS(posVC);
      selectedValue = getTextureValue(posIS);
      selectedPosVC = posVC;
      selectedPosIS = posIS;
    }

    // If the clipping range is shorter than the sample distance
    // we can skip the sampling loop along the ray.
    if (raySteps <= 1.0) {
      gl_FragData[0] = getColorForValue(selectedValue, selectedPosVC, selectedPosIS);
      return;
    }

    posVC += jitter * stepVC;
    stepsTraveled += jitter;

    // Sample along the ray until vtkMaximumNumberOfSamples,
    // ending slightly inside the total distance
    for (int i = 0; i < vtkMaximumNumberOfSamples; ++i) {
      // If we have reached the last step, break
      if (stepsTraveled + 1.0 >= raySteps) {
        break;
      }

      // Get selected values
      vec3 posIS = posVCtoIS(posVC);
      vec4 previousSelectedValue = selectedValue;
      vec4 currentValue = getTextureValue(posIS);
      selectedValue = OP(selectedValue, currentValue);
      if (previousSelectedValue != selectedValue) {
        selectedPosVC = posVC;
        selectedPosIS = posIS;
      }

      // Otherwise, continue along the ray
      stepsTraveled++;
      posVC += stepVC;
    }

    // Perform the last step along the ray using the
    // residual distance
    posVC = rayOriginVC + maxDistance * rayDirVC;
    {
      vec3 posIS = posVCtoIS(posVC);
      vec4 previousSelectedValue = selectedValue;
      vec4 currentValue = getTextureValue(posIS);
      selectedValue = OP(selectedValue, currentValue);
      if (previousSelectedValue != selectedValue) {
        selectedPosVC = posVC;
        selectedPosIS = posIS;
      }
    }

    gl_FragData[0] = getColorForValue(selectedValue, selectedPosVC, selectedPosIS);
  #endif

  #if vtkBlendMode == ADDITIVE_INTENSITY_BLEND ||                                \\
      vtkBlendMode == AVERAGE_INTENSITY_BLEND
    vec4 sum = vec4(0.);
    #if vtkBlendMode == AVERAGE_INTENSITY_BLEND
      float totalWeight = 0.0;
    #endif
    vec3 posVC = rayOriginVC + minDistance * rayDirVC;
    float stepsTraveled = 0.0;

    vec3 posIS = posVCtoIS(posVC);
    vec4 value = getTextureValue(posIS);

    if (raySteps <= 1.0) {
      gl_FragData[0] = vec4(0.0);
      if (valueWithinScalarRange(value)) {
        gl_FragData[0] = getColorForValue(value, posVC, posIS);
      }
      return;
    }

    if (valueWithinScalarRange(value)) {
      sum += value * jitter;
      #if vtkBlendMode == AVERAGE_INTENSITY_BLEND
        totalWeight += jitter;
      #endif
    }
    posVC += jitter * stepVC;
    stepsTraveled += jitter;

    // Sample along the ray until vtkMaximumNumberOfSamples,
    // ending slightly inside the total distance
    for (int i = 0; i < vtkMaximumNumberOfSamples; ++i) {
      // If we have reached the last step, break
      if (stepsTraveled + 1.0 >= raySteps) {
        break;
      }

      posIS = posVCtoIS(posVC);
      value = getTextureValue(posIS);
      // One can control the scalar range by setting the AverageIPScalarRange to
      // disregard scalar values, not in the range of interest, from the average
      // computation. Notes:
      // - We are comparing all values in the texture to see if any of them
      //   are outside of the scalar range. In the future we might want to allow
      //   scalar ranges for each component.
      if (valueWithinScalarRange(value)) {
        sum += value;
        #if vtkBlendMode == AVERAGE_INTENSITY_BLEND
          totalWeight++;
        #endif
      }

      stepsTraveled++;
      posVC += stepVC;
    }

    // Perform the last step along the ray using the
    // residual distance
    posVC = rayOriginVC + maxDistance * rayDirVC;
    posIS = posVCtoIS(posVC);
    value = getTextureValue(posIS);
    if (valueWithinScalarRange(value)) {
      sum += value * (raySteps - stepsTraveled);
      #if vtkBlendMode == AVERAGE_INTENSITY_BLEND
        totalWeight += raySteps - stepsTraveled;
      #endif
    }

    if (totalWeight > 0.0) {
      #if vtkBlendMode == AVERAGE_INTENSITY_BLEND
        sum /= vec4(totalWeight, totalWeight, totalWeight, 1.0);
      #endif
      gl_FragData[0] = getColorForValue(sum, posVC, posIS);
    } else {
      gl_FragData[0] = vec4(0.0);
    }
  #endif

  #if vtkBlendMode == RADON_TRANSFORM_BLEND
    float normalizedRayIntensity = 1.0;
    vec3 firstPosVC = rayOriginVC + minDistance * rayDirVC;
    vec3 posVC = firstPosVC;
    float stepsTraveled = 0.0;

    // handle very thin volumes
    if (raySteps <= 1.0) {
      vec3 posIS = posVCtoIS(posVC);
      vec4 tValue = getTextureValue(posIS);
      normalizedRayIntensity -= raySteps * sampleDistance *
                                getRadonOpacity(tValue);
      gl_FragData[0] =
          vec4(getRadonColor(normalizedRayIntensity), 1.0);
      return;
    }

    vec3 firstPosIS = posVCtoIS(firstPosVC);
    vec4 firstValue = getTextureValue(firstPosIS);
    normalizedRayIntensity -=
        jitter * sampleDistance * getRadonOpacity(firstValue);

    posVC += jitter * stepVC;
    stepsTraveled += jitter;

    for (int i = 0; i < vtkMaximumNumberOfSamples; ++i) {
      if (stepsTraveled + 1.0 >= raySteps) {
        break;
      }

      vec3 posIS = posVCtoIS(posVC);
      vec4 value = getTextureValue(posIS);
      // Convert scalar value to normalizedRayIntensity coefficient and
      // accumulate normalizedRayIntensity
      normalizedRayIntensity -=
          sampleDistance * getRadonOpacity(value);

      posVC += stepVC;
      stepsTraveled++;
    }

    if ((raySteps - stepsTraveled) > 0.0) {
      vec3 endPosIS = clamp(
        posVCtoIS(rayOriginVC + maxDistance * rayDirVC),
        vec3(0.0), vec3(1.0));
      vec4 endValue = getTextureValue(endPosIS);
      normalizedRayIntensity -=
          (raySteps - stepsTraveled) * sampleDistance * getRadonOpacity(endValue);
    }

    // map normalizedRayIntensity to color
    gl_FragData[0] =
        vec4(getRadonColor(normalizedRayIntensity), 1.0);
  #endif

  #if vtkBlendMode == LABELMAP_EDGE_PROJECTION_BLEND
    // Only works with a single volume
    vec3 posVC = rayOriginVC + minDistance * rayDirVC;
    float stepsTraveled = 0.0;
    vec3 posIS = posVCtoIS(posVC);
    vec4 tValue = getTextureValue(posIS);
    if (raySteps <= 1.0) {
      gl_FragData[0] = getColorForValue(tValue, posVC, posIS);
      return;
    }

    vec3 stepIS = vecVCToIS(stepVC);
    vec4 value = tValue;
    posIS += jitter * stepIS;
    stepsTraveled += jitter;
    vec3 maxPosIS = posIS; // Store the position of the max value
    int segmentIndex = int(value.g);
    bool originalPosHasSeenNonZero = false;

    if (segmentIndex != 0) {
      // Tried using the segment index in an boolean array but reading
      // from the array by dynamic indexing was horrondously slow
      // so use bit masking instead and assign 1 to the bit corresponding to the
      // segment index and later check if the bit is set via bit operations
      setLabelOutlineBit(segmentIndex);
    }

    // Sample along the ray until vtkMaximumNumberOfSamples,
    // ending slightly inside the total distance
    for (int i = 0; i < vtkMaximumNumberOfSamples; ++i) {
      // If we have reached the last step, break
      if (stepsTraveled + 1.0 >= raySteps) {
        break;
      }

      // compute the scalar
      tValue = getTextureValue(posIS);
      segmentIndex = int(tValue.g);

      if (segmentIndex != 0) {
        originalPosHasSeenNonZero = true;
        setLabelOutlineBit(segmentIndex);
      }

      if (tValue.r > value.r) {
        value = tValue;   // Update the max value
        maxPosIS = posIS; // Update the position where max occurred
      }

      // Otherwise, continue along the ray
      stepsTraveled++;
      posIS += stepIS;
    }

    // Perform the last step along the ray using the
    // residual distance
    posIS = posVCtoIS(rayOriginVC + maxDistance * rayDirVC);
    tValue = getTextureValue(posIS);

    if (tValue.r > value.r) {
      value = tValue;   // Update the max value
      maxPosIS = posIS; // Update the position where max occurred
    }

    // If we have not seen any non-zero segments, we can return early
    // and grab color from the actual center value first component (image)
    if (!originalPosHasSeenNonZero) {
      vec3 maxPosVC = posIStoVC(maxPosIS);
      gl_FragData[0] = getColorForValue(value, maxPosVC, maxPosIS);
      return;
    }

    vec3 neighborRayStepsIS = stepIS;
    float neighborRaySteps = raySteps;
    bool shouldLookInAllNeighbors = false;

    vec3 volumeSpacings = volume.spacing;
    float minVoxelSpacing =
        min(volumeSpacings[0], min(volumeSpacings[1], volumeSpacings[2]));
    vec4 base =
        vec4(gl_FragCoord.x, gl_FragCoord.y, gl_FragCoord.z, gl_FragCoord.w);

    vec4 baseXPlus = vec4(gl_FragCoord.x + 1.0, gl_FragCoord.y, gl_FragCoord.z,
                          gl_FragCoord.w);
    vec4 baseYPlus = vec4(gl_FragCoord.x, gl_FragCoord.y + 1.0, gl_FragCoord.z,
                          gl_FragCoord.w);

    vec3 baseWorld = fragCoordToWorld(base);
    vec3 baseXPlusWorld = fragCoordToWorld(baseXPlus);
    vec3 baseYPlusWorld = fragCoordToWorld(baseYPlus);

    float XPlusDiff = length(baseXPlusWorld - baseWorld);
    float YPlusDiff = length(baseYPlusWorld - baseWorld);

    float minFragSpacingWorld = min(XPlusDiff, YPlusDiff);

    for (int s = 1; s < MAX_SEGMENT_INDEX; s++) {
      // bail out quickly if the segment index has not
      // been seen by the center segment
      if (!isLabelOutlineBitSet(s)) {
        continue;
      }

      // Use texture sampling for outlineThickness so that we can have
      // per segment thickness
      float textureCoordinate = float(s - 1) / 1024.0;
      float textureValue =
          texture2D(labelOutlineThicknessTexture, vec2(textureCoordinate, 0.5)).r;

      int actualThickness = int(textureValue * 255.0);

      // check the extreme points in the neighborhood since there is a better
      // chance of finding the edge there, so that we can bail out
      // faster if we find the edge
      bool onEdge = checkOnEdgeForNeighbor(-actualThickness, -actualThickness, s,
                                          stepIS) ||
                    checkOnEdgeForNeighbor(actualThickness, actualThickness, s,
                                          stepIS) ||
                    checkOnEdgeForNeighbor(actualThickness, -actualThickness, s,
                                          stepIS) ||
                    checkOnEdgeForNeighbor(-actualThickness, +actualThickness, s,
                                          stepIS);

      if (onEdge) {
        return;
      }

      // since the next step is computationally expensive, we need to perform
      // some optimizations to avoid it if possible. One of the optimizations
      // is to check the whether the minimum of the voxel spacing is greater than
      // the 2 * the thickness of the outline segment. If that is the case
      // then we can safely skip the next step since we can be sure that the
      // the previous 4 checks on the extreme points would caught the entirety
      // of the all the fragments inside. i.e., this happens when we zoom out,
      if (minVoxelSpacing >
          (2.0 * float(actualThickness) - 1.0) * minFragSpacingWorld) {
        continue;
      }

      // Loop through the rest, skipping the processed extremes and the center
      for (int i = -actualThickness; i <= actualThickness; i++) {
        for (int j = -actualThickness; j <= actualThickness; j++) {
          if (i == 0 && j == 0)
            continue; // Skip the center
          if (abs(i) == actualThickness && abs(j) == actualThickness)
            continue; // Skip corners
          if (checkOnEdgeForNeighbor(i, j, s, stepIS)) {
            return;
          }
        }
      }
    }

    float sampleHeight = volume.transferFunctionsSampleHeight[0];
    vec3 tColor0 = getColorFromTexture(value.r, 0, sampleHeight);
    float pwfValue0 = getOpacityFromTexture(value.r, 0, sampleHeight);
    gl_FragData[0] = vec4(tColor0, pwfValue0);
  #endif
}

//=======================================================================
// given a
// - ray direction (rayDir)
// - starting point (vertexVCVSOutput)
// - bounding planes of the volume
// - optionally depth buffer values
// - far clipping plane
// compute the start/end distances of the ray we need to cast
vec2 computeRayDistances(vec3 rayOriginVC, vec3 rayDirVC) {
  vec2 dists = rayIntersectVolumeDistances(rayOriginVC, rayDirVC);

  //VTK::ClipPlane::Impl

  // do not go behind front clipping plane
  dists.x = max(0.0, dists.x);

  // do not go PAST far clipping plane
  float farDist = -camThick / rayDirVC.z;
  dists.y = min(farDist, dists.y);

  // Do not go past the zbuffer value if set
  // This is used for intermixing opaque geometry
  //VTK::ZBuffer::Impl

  return dists;
}

float getFragmentSeed() {
  // This first noise has a diagonal pattern
  float firstNoise =
      fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453);
  // This second noise is made out of blocks of CPU generated noise
  float secondNoise = texture2D(jtexture, gl_FragCoord.xy / 32.0).r;
  // Combine the two sources of noise in a way that the distribution is uniform
  // in [0,1[
  float noiseSum = firstNoise + secondNoise;
  return noiseSum < 1.0 ? noiseSum : noiseSum - 1.0;
}

void main() {
  fragmentSeed = getFragmentSeed();

  if (cameraParallel == 1) {
    // Camera is parallel, so the rayDir is just the direction of the camera.
    rayDirVC = vec3(0.0, 0.0, -1.0);
  } else {
    // camera is at 0,0,0 so rayDir for perspective is just the vc coord
    rayDirVC = normalize(vertexVCVSOutput);
  }

  vec3 rayOriginVC = vertexVCVSOutput;
  vec2 rayStartEndDistancesVC = computeRayDistances(rayOriginVC, rayDirVC);
  if (rayStartEndDistancesVC[1] <= rayStartEndDistancesVC[0] ||
      rayStartEndDistancesVC[1] <= 0.0) {
    // Volume not hit or behind the ray
    discard;
  }

  // Perform the blending operation along the ray
  applyBlend(rayOriginVC, rayDirVC, rayStartEndDistancesVC[0], rayStartEndDistancesVC[1]);
}
`;var Yh=Hr(La(),1);var{vtkWarningMacro:AR,vtkErrorMacro:xc}=Ce,PR={idxToView:F.identity(new Float64Array(16)),vecISToVCMatrix:K.identity(new Float64Array(9)),normalISToVCMatrix:K.identity(new Float64Array(9)),linearModelToViewMatrix:K.identity(new Float64Array(9)),modelToView:F.identity(new Float64Array(16)),projectionToView:F.identity(new Float64Array(16)),projectionToWorld:F.identity(new Float64Array(16))};function HR(t,e){e.classHierarchy.push("vtkOpenGLVolumeMapper");function n(c){return c.getUseLabelOutline()||e.renderable.getBlendMode()===qe.LABELMAP_EDGE_PROJECTION_BLEND}let r=new Map;function a(c,f){if(!f)return;let u=(r.get(f)??0)-1;u<=0?(c.unregisterGraphicsResourceUser(f,t),r.delete(f)):r.set(f,u)}function i(c,f){if(!f)return;let u=r.get(f)??0,g=u+1;r.set(f,g),u<=0&&c.registerGraphicsResourceUser(f,t)}function s(c,f,u){f!==u&&(a(c,f),i(c,u))}function o(c){[...r.keys()].forEach(f=>c.unregisterGraphicsResourceUser(f,t))}t.buildPass=()=>{e.zBufferTexture=null},t.zBufferPass=(c,f)=>{if(c){let u=f.getZBufferTexture();u!==e.zBufferTexture&&(e.zBufferTexture=u)}},t.opaqueZBufferPass=(c,f)=>t.zBufferPass(c,f),t.volumePass=(c,f)=>{if(c){let u=e._openGLRenderWindow;e._openGLRenderWindow=t.getLastAncestorOfType("vtkOpenGLRenderWindow"),u&&!u.isDeleted()&&u!==e._openGLRenderWindow&&o(u),e.context=e._openGLRenderWindow.getContext(),e.tris.setOpenGLRenderWindow(e._openGLRenderWindow),e.jitterTexture.setOpenGLRenderWindow(e._openGLRenderWindow),e.framebuffer.setOpenGLRenderWindow(e._openGLRenderWindow),e.openGLVolume=t.getFirstAncestorOfType("vtkOpenGLVolume");let g=e.openGLVolume.getRenderable();e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer");let l=e._openGLRenderer.getRenderable();e.openGLCamera=e._openGLRenderer.getViewNodeFor(l.getActiveCamera(),e.openGLCamera),t.renderPiece(l,g)}},t.getShaderTemplate=(c,f,u)=>{c.Vertex=Kh,c.Fragment=Xh,c.Geometry=""},t.replaceShaderValues=(c,f,u)=>{let g=c.Fragment;g=k.substitute(g,"//VTK::EnabledColorFunctions",`#define EnableColorForValueFunctionId${e.previousState.colorForValueFunctionId}`).result;let l=[];e.previousState.surfaceLightingEnabled&&l.push("Surface"),e.previousState.volumeLightingEnabled&&l.push("Volume"),g=k.substitute(g,"//VTK::EnabledLightings",l.map(y=>`#define Enable${y}Lighting`)).result,e.previousState.multiTexturePerVolumeEnabled&&(g=k.substitute(g,"//VTK::EnabledMultiTexturePerVolume","#define EnabledMultiTexturePerVolume").result),e.previousState.useIndependentComponents&&(g=k.substitute(g,"//VTK::EnabledIndependentComponents","#define EnabledIndependentComponents").result),e.previousState.gradientOpacityEnabled&&(g=k.substitute(g,"//VTK::EnabledGradientOpacity","#define EnabledGradientOpacity").result),g=k.substitute(g,"//VTK::vtkProportionalComponents",e.previousState.proportionalComponents.map(y=>`#define vtkComponent${y}Proportional`).join(`
`)).result,g=k.substitute(g,"//VTK::vtkForceNearestComponents",e.previousState.forceNearestComponents.map(y=>`#define vtkComponent${y}ForceNearest`).join(`
`)).result,e.previousState.hasZBufferTexture&&(g=k.substitute(g,"//VTK::ZBuffer::Dec",["uniform sampler2D zBufferTexture;","uniform float vpZWidth;","uniform float vpZHeight;"]).result,g=k.substitute(g,"//VTK::ZBuffer::Impl",["vec4 depthVec = texture2D(zBufferTexture, vec2(gl_FragCoord.x / vpZWidth, gl_FragCoord.y/vpZHeight));","float zdepth = (depthVec.r*256.0 + depthVec.g)/257.0;","zdepth = zdepth * 2.0 - 1.0;","if (cameraParallel == 0) {","zdepth = -2.0 * camFar * camNear / (zdepth*(camFar-camNear)-(camFar+camNear)) - camNear;}","else {",`zdepth = (zdepth + 1.0) * 0.5 * (camFar - camNear);}
`,"zdepth = -zdepth/rayDirVC.z;","dists.y = min(zdepth,dists.y);"]).result),g=k.substitute(g,"//VTK::BlendMode",`${e.previousState.blendMode}`).result,g=k.substitute(g,"//VTK::NumberOfLights",`${e.previousState.numberOfLights}`).result,g=k.substitute(g,"//VTK::MaxLaoKernelSize",`${e.previousState.maxLaoKernelSize}`).result,g=k.substitute(g,"//VTK::NumberOfComponents",`${e.previousState.numberOfComponents}`).result,g=k.substitute(g,"//VTK::MaximumNumberOfSamples",`${e.previousState.maximumNumberOfSamples}`).result,c.Fragment=g;let h=e.previousState.numberOfClippingPlanes;h>0&&(g=k.substitute(g,"//VTK::ClipPlane::Dec",["uniform vec3 vClipPlaneNormals[6];","uniform float vClipPlaneDistances[6];","uniform vec3 vClipPlaneOrigins[6];","uniform int clip_numPlanes;","//VTK::ClipPlane::Dec","#define vtkClippingPlanesOn"],!1).result,g=k.substitute(g,"//VTK::ClipPlane::Impl",[`for(int i = 0; i < ${h}; i++) {`,"  float rayDirRatio = dot(rayDirVC, vClipPlaneNormals[i]);","  float equationResult = dot(vertexVCVSOutput, vClipPlaneNormals[i]) + vClipPlaneDistances[i];","  if (rayDirRatio == 0.0)","  {","    if (equationResult < 0.0) dists.x = dists.y;","    continue;","  }","  float result = -1.0 * equationResult / rayDirRatio;","  if (rayDirRatio < 0.0) dists.y = min(dists.y, result);","  else dists.x = max(dists.x, result);","}","//VTK::ClipPlane::Impl"],!1).result),c.Fragment=g},t.getNeedToRebuildShaders=(c,f,u)=>{let g=!!e.zBufferTexture,l=e.currentValidInputs.length,h=e.numberOfLights,y=e.numberOfComponents,p=e.useIndependentComponents,v=u.getProperties()[e.currentValidInputs[0].inputIndex],x=l>1,S=$.getDiagonalLength(u.getBounds()),T=Math.ceil(S/t.getCurrentSampleDistance(f));T>e.renderable.getMaximumSamplesPerRay()&&AR(`The number of steps required ${T} is larger than the specified maximum number of steps ${e.renderable.getMaximumSamplesPerRay()}.
Please either change the volumeMapper sampleDistance or its maximum number of samples.`);let d=p?y:1,C=!1;for(let U=0;U<d;++U)if(v.getUseGradientOpacity(U)){C=!0;break}let w=0,D=v.getLAOKernelSize();D>w&&v.getLocalAmbientOcclusion()&&v.getAmbient()>0&&(w=D);let m=e.renderable.getClippingPlanes().length,M=e.renderable.getViewSpecificProperties().OpenGL?.ShaderReplacements,R=e.currentRenderPass?.getShaderReplacement(),E=e.renderable.getBlendMode(),V=(()=>{if(E!==qe.LABELMAP_EDGE_PROJECTION_BLEND&&n(v))return 5;if(p)switch(v.getColorMixPreset()){case Ta.ADDITIVE:return 1;case Ta.COLORIZE:return 2;case Ta.CUSTOM:return 3;default:return 4}return 0})(),N=v.getVolumetricScatteringBlending()<1,_=v.getVolumetricScatteringBlending()>0,L=!1;for(let U=0;U<y;++U)if(v.getForceNearestInterpolation(U)){L=!0;break}let B=[],b=[];for(let U=0;U<y;U++)v.getOpacityMode(U)===vc.PROPORTIONAL&&B.push(U),v.getForceNearestInterpolation(U)&&b.push(U);let G={numberOfComponents:y,useIndependentComponents:p,proportionalComponents:B,forceNearestComponents:b,blendMode:E,numberOfLights:h,numberOfValidInputs:l,maximumNumberOfSamples:T,hasZBufferTexture:g,maxLaoKernelSize:w,numberOfClippingPlanes:m,mapperShaderReplacements:M,renderPassShaderReplacements:R,colorForValueFunctionId:V,surfaceLightingEnabled:N,volumeLightingEnabled:_,forceNearestInterpolationEnabled:L,multiTexturePerVolumeEnabled:x,gradientOpacityEnabled:C};return c.getProgram()?.getHandle()===0||!e.previousState||!(0,Yh.default)(e.previousState,G)?(e.previousState=G,!0):!1},t.updateShaders=(c,f,u)=>{if(t.getNeedToRebuildShaders(c,f,u)){let g={Vertex:null,Fragment:null,Geometry:null};t.buildShaders(g,f,u);let l=e._openGLRenderWindow.getShaderCache().readyShaderProgramArray(g.Vertex,g.Fragment,g.Geometry);if(!l)return xc("Error compiling volume mapper shader program."),c.setProgram(null),!1;l!==c.getProgram()&&(c.setProgram(l),c.getVAO().releaseGraphicsResources()),c.getShaderSourceTime().modified()}else if(!e._openGLRenderWindow.getShaderCache().readyShaderProgram(c.getProgram()))return c.setProgram(null),!1;return c.getVAO().bind(),t.setMapperShaderParameters(c,f,u),t.setCameraShaderParameters(c,f,u),t.setPropertyShaderParameters(c,f,u),t.getClippingPlaneShaderParameters(c,f,u),!0},t.setMapperShaderParameters=(c,f,u)=>{let g=c.getProgram();if(!g)return;c.getCABO().getElementCount()&&(e.VBOBuildTime.getMTime()>c.getAttributeUpdateTime().getMTime()||c.getShaderSourceTime().getMTime()>c.getAttributeUpdateTime().getMTime())&&(g.isAttributeUsed("vertexDC")&&(c.getVAO().addAttributeArray(g,c.getCABO(),"vertexDC",c.getCABO().getVertexOffset(),c.getCABO().getStride(),e.context.FLOAT,3,e.context.FALSE)||xc("Error setting vertexDC in shader VAO.")),c.getAttributeUpdateTime().modified());let l=t.getCurrentSampleDistance(f);g.setUniformf("sampleDistance",l);let h=l*e.renderable.getVolumeShadowSamplingDistFactor();g.setUniformf("volumeShadowSampleDistance",h),e.scalarTextures.forEach((T,d)=>{g.setUniformi(`volumeTexture[${d}]`,T.getTextureUnit())});let y=u.getProperties()[e.currentValidInputs[0].inputIndex].getIpScalarRange(),p=new Float32Array(4),v=new Float32Array(4),x=(T,d,C)=>{d?.dataComputedScale?.length&&(p[T]=y[0]*d.dataComputedScale[C]+d.dataComputedOffset[C],v[T]=y[1]*d.dataComputedScale[C]+d.dataComputedOffset[C],p[T]=(p[T]-d.offset[C])/d.scale[C],v[T]=(v[T]-d.offset[C])/d.scale[C])};if(e.previousState.multiTexturePerVolumeEnabled)e.scalarTextures.forEach((T,d)=>{x(d,T.getVolumeInfo(),0)});else{let T=e.scalarTextures[0].getVolumeInfo();for(let d=0;d<4;++d)x(d,T,d)}let S="volume";if(g.setUniform4f(`${S}.ipScalarRangeMin`,p[0],p[1],p[2],p[3]),g.setUniform4f(`${S}.ipScalarRangeMax`,v[0],v[1],v[2],v[3]),e.zBufferTexture!==null){g.setUniformi("zBufferTexture",e.zBufferTexture.getTextureUnit());let T=e._useSmallViewport?[e._smallViewportWidth,e._smallViewportHeight]:e._openGLRenderWindow.getFramebufferSize();g.setUniformf("vpZWidth",T[0]),g.setUniformf("vpZHeight",T[1])}},t.setCameraShaderParameters=(c,f,u)=>{let{idxToView:g,vecISToVCMatrix:l,normalISToVCMatrix:h,linearModelToViewMatrix:y,modelToView:p,projectionToView:v,projectionToWorld:x}=PR,S=e.openGLCamera.getKeyMatrices(f),T=e.openGLVolume.getKeyMatrices();F.multiply(p,S.wcvc,T.mcwc);let d=c.getProgram(),C=e.openGLCamera.getRenderable(),w=C.getParallelProjection(),D=C.getClippingRange();d.setUniformf("camThick",D[1]-D[0]),d.setUniformf("camNear",D[0]),d.setUniformf("camFar",D[1]),d.setUniformi("cameraParallel",w);let m=e.currentValidInputs[0],M=m.imageData.getBounds(),R=$.getCorners(M,[]).map(H=>{if(W.transformMat4(H,H,p),!w){let fe=-D[0]/(H[2]*W.length(H));W.scale(H,H,fe)}return W.transformMat4(H,H,S.vcpc),H}),E=$.addPoints([...$.INIT_BOUNDS],R);d.setUniformf("dcxmin",E[0]),d.setUniformf("dcxmax",E[1]),d.setUniformf("dcymin",E[2]),d.setUniformf("dcymax",E[3]);let V=t.getRenderTargetSize();d.setUniformf("vpWidth",V[0]),d.setUniformf("vpHeight",V[1]);let N=t.getRenderTargetOffset();d.setUniformf("vpOffsetX",N[0]/V[0]),d.setUniformf("vpOffsetY",N[1]/V[1]),F.invert(v,S.vcpc),d.setUniformMatrix("PCVCMatrix",v),d.setUniformi("twoSidedLighting",f.getTwoSidedLighting());let _=new Array(2*e.previousState.maxLaoKernelSize);for(let H=0;H<e.previousState.maxLaoKernelSize;H++)_[H*2]=Math.random(),_[H*2+1]=Math.random();if(d.setUniform2fv("kernelSample",_),e.numberOfLights>0){let H=0;f.getLights().forEach(fe=>{if(fe.getSwitch()>0){let pe=`lights[${H}]`,He=fe.getColor(),De=fe.getIntensity(),he=W.scale([],He,De);d.setUniform3fv(`${pe}.color`,he);let St=fe.getTransformedPosition();W.transformMat4(St,St,p),d.setUniform3fv(`${pe}.positionVC`,St);let Ve=[...fe.getDirection()];W.transformMat3(Ve,Ve,S.normalMatrix),W.normalize(Ve,Ve),d.setUniform3fv(`${pe}.directionVC`,Ve);let Ie=[-.5*Ve[0],-.5*Ve[1],-.5*(Ve[2]-1)];d.setUniform3fv(`${pe}.halfAngleVC`,Ie);let Ln=fe.getAttenuationValues();d.setUniform3fv(`${pe}.attenuation`,Ln);let Lt=fe.getExponent();d.setUniformf(`${pe}.exponent`,Lt);let Ct=fe.getConeAngle();d.setUniformf(`${pe}.coneAngle`,Ct);let _n=fe.getPositional();d.setUniformi(`${pe}.isPositional`,_n),H++}})}let L="volume",B=u.getProperties()[m.inputIndex],b=m.imageData,G=b.getSpatialExtent(),U=b.getSpacing(),z=b.getDimensions(),A=b.getIndexToWorld(),Q=b.getWorldToIndex(),X=b.getDirectionByReference();F.multiply(g,p,A),d.setUniform3fv(`${L}.spacing`,U);let te=W.inverse([],U);d.setUniform3fv(`${L}.inverseSpacing`,te),d.setUniform3iv(`${L}.dimensions`,z),d.setUniform3fv(`${L}.inverseDimensions`,W.inverse([],z)),d.setUniformMatrix(`${L}.worldToIndex`,Q),l.fill(0);let I=W.multiply(new Float64Array(3),z,U);l[0]=I[0],l[4]=I[1],l[8]=I[2],K.multiply(l,X,l),K.fromMat4(y,p),K.multiply(l,y,l),d.setUniformMatrix3x3(`${L}.vecISToVCMatrix`,l),d.setUniformMatrix3x3(`${L}.vecVCToISMatrix`,K.invert(new Float32Array(9),l)),h.fill(0),h[0]=I[0],h[4]=I[1],h[8]=I[2],K.multiply(h,X,h),K.multiply(h,T.normalMatrix,h),K.multiply(h,S.normalMatrix,h),d.setUniformMatrix3x3(`${L}.normalISToVCMatrix`,h);let oe=W.fromValues(G[0],G[2],G[4]),ae=W.transformMat4(new Float64Array(3),oe,g);d.setUniform3fv(`${L}.originVC`,ae);let P=$.getDiagonalLength(u.getBounds());if(d.setUniformf(`${L}.diagonalLength`,P),n(B)){let H=C.getDistance();C.setClippingRange(H,H+.1);let fe=e.openGLCamera.getKeyMatrices(f);F.invert(x,fe.wcpc),C.setClippingRange(D[0],D[1]),e.openGLCamera.getKeyMatrices(f),d.setUniformMatrix(`${L}.PCWCMatrix`,x)}if(B.getVolumetricScatteringBlending()>0&&(d.setUniformf(`${L}.globalIlluminationReach`,B.getGlobalIlluminationReach()),d.setUniformf(`${L}.volumetricScatteringBlending`,B.getVolumetricScatteringBlending()),d.setUniformf(`${L}.anisotropy`,B.getAnisotropy()),d.setUniformf(`${L}.anisotropySquared`,B.getAnisotropy()**2)),B.getLocalAmbientOcclusion()&&B.getAmbient()>0){let H=B.getLAOKernelSize();d.setUniformi(`${L}.kernelSize`,H);let fe=B.getLAOKernelRadius();d.setUniformi(`${L}.kernelRadius`,fe)}else d.setUniformi(`${L}.kernelSize`,0)},t.setPropertyShaderParameters=(c,f,u)=>{let g=c.getProgram();g.setUniformi("jtexture",e.jitterTexture.getTextureUnit());let l=u.getProperties();g.setUniformi("labelOutlineThicknessTexture",e.labelOutlineThicknessTexture.getTextureUnit()),g.setUniformi("opacityTexture",e.opacityTexture.getTextureUnit()),g.setUniformi("colorTexture",e.colorTexture.getTextureUnit());let h="volume",y=l[e.currentValidInputs[0].inputIndex],p=e.previousState.numberOfComponents,v=e.previousState.useIndependentComponents;if(v){let m=new Float32Array(4);for(let E=0;E<p;E++)m[E]=y.getComponentWeight(E);g.setUniform4fv(`${h}.independentComponentMix`,m);let M=new Float32Array(4),R=1/p;for(let E=0;E<p;++E)M[E]=(E+.5)*R;g.setUniform4fv(`${h}.transferFunctionsSampleHeight`,M)}let x=e.colorForValueFunctionId;g.setUniformi(`${h}.colorForValueFunctionId`,x);let S=y.getComputeNormalFromOpacity();g.setUniformi(`${h}.computeNormalFromOpacity`,S);let T=new Float32Array(4),d=new Float32Array(4),C=new Float32Array(4),w=new Float32Array(4);for(let m=0;m<p;m++){let M=e.previousState.multiTexturePerVolumeEnabled,R=M?m:0,E=M?0:m,V=e.scalarTextures[R].getVolumeInfo(),N=v?m:0,_=V.scale[E],L=y.getRGBTransferFunction(N).getRange();T[m]=_/(L[1]-L[0]),d[m]=(V.offset[E]-L[0])/(L[1]-L[0]);let B=y.getScalarOpacity(N).getRange();C[m]=_/(B[1]-B[0]),w[m]=(V.offset[E]-B[0])/(B[1]-B[0])}if(g.setUniform4fv(`${h}.colorTextureScale`,T),g.setUniform4fv(`${h}.colorTextureShift`,d),g.setUniform4fv(`${h}.opacityTextureScale`,C),g.setUniform4fv(`${h}.opacityTextureShift`,w),e.previousState.gradientOpacityEnabled){let m=new Array(4),M=new Array(4),R=new Array(4),E=new Array(4);if(v)for(let V=0;V<p;++V){let N=e.previousState.multiTexturePerVolumeEnabled,_=N?V:0,L=N?0:V,B=e.scalarTextures[_].getVolumeInfo().scale[L];if(y.getUseGradientOpacity(V)){let b=[y.getGradientOpacityMinimumOpacity(V),y.getGradientOpacityMaximumOpacity(V)],G=[y.getGradientOpacityMinimumValue(V),y.getGradientOpacityMaximumValue(V)];R[V]=b[0],E[V]=b[1],m[V]=B*(b[1]-b[0])/(G[1]-G[0]),M[V]=-G[0]*(b[1]-b[0])/(G[1]-G[0])+b[0]}else R[V]=1,E[V]=1,m[V]=0,M[V]=1}else{let V=p-1,N=e.previousState.multiTexturePerVolumeEnabled,_=N?V:0,L=N?0:V,B=e.scalarTextures[_].getVolumeInfo().scale[L],b=[y.getGradientOpacityMinimumOpacity(0),y.getGradientOpacityMaximumOpacity(0)],G=[y.getGradientOpacityMinimumValue(0),y.getGradientOpacityMaximumValue(0)];R[0]=b[0],E[0]=b[1],m[0]=B*(b[1]-b[0])/(G[1]-G[0]),M[0]=-G[0]*(b[1]-b[0])/(G[1]-G[0])+b[0]}g.setUniform4f(`${h}.gradientOpacityScale`,m),g.setUniform4f(`${h}.gradientOpacityShift`,M),g.setUniform4f(`${h}.gradientOpacityMin`,R),g.setUniform4f(`${h}.gradientOpacityMax`,E)}let D=y.getLabelOutlineOpacity();if(g.setUniformf(`${h}.outlineOpacity`,D),e.numberOfLights>0){g.setUniformf(`${h}.ambient`,y.getAmbient()),g.setUniformf(`${h}.diffuse`,y.getDiffuse()),g.setUniformf(`${h}.specular`,y.getSpecular());let m=y.getSpecularPower();g.setUniformf(`${h}.specularPower`,m===0?1:m)}},t.getClippingPlaneShaderParameters=(c,f,u)=>{if(e.renderable.getClippingPlanes().length>0){let g=e.openGLCamera.getKeyMatrices(f),l=[],h=[],y=[],p=e.renderable.getClippingPlanes(),v=p.length;for(let S=0;S<v;++S){let T=p[S].getNormal(),d=p[S].getOrigin();W.transformMat3(T,T,g.normalMatrix),W.transformMat4(d,d,g.wcvc);let C=-1*W.dot(d,T);l.push(T[0]),l.push(T[1]),l.push(T[2]),h.push(C),y.push(d[0]),y.push(d[1]),y.push(d[2])}let x=c.getProgram();x.setUniform3fv("vClipPlaneNormals",l),x.setUniformfv("vClipPlaneDistances",h),x.setUniform3fv("vClipPlaneOrigins",y),x.setUniformi("clip_numPlanes",v)}},t.releaseGraphicsResources=c=>{let f=c??e._openGLRenderWindow;e.framebuffer.releaseGraphicsResources(),e.jitterTexture.releaseGraphicsResources(f),e.tris.releaseGraphicsResources(f),e.copyVAO&&(e.copyVAO.releaseGraphicsResources(),e.copyVAO=null),e.copyShader=null},t.delete=at(()=>t.releaseGraphicsResources(),()=>{e._animationRateSubscription&&(e._animationRateSubscription.unsubscribe(),e._animationRateSubscription=null)},()=>{e._openGLRenderWindow&&o(e._openGLRenderWindow)},t.delete),t.getRenderTargetSize=()=>{if(e._useSmallViewport)return[e._smallViewportWidth,e._smallViewportHeight];let{usize:c,vsize:f}=e._openGLRenderer.getTiledSizeAndOrigin();return[c,f]},t.getRenderTargetOffset=()=>{let{lowerLeftU:c,lowerLeftV:f}=e._openGLRenderer.getTiledSizeAndOrigin();return[c,f]},t.getCurrentSampleDistance=c=>{let f=c.getVTKWindow().getInteractor(),u=e.renderable.getSampleDistance();return f.isAnimating()?u*e.renderable.getInteractionSampleDistanceFactor():u},t.renderPieceStart=(c,f)=>{let u=c.getVTKWindow().getInteractor();if(e._lastScale||(e._lastScale=e.renderable.getInitialInteractionScale()),e._useSmallViewport=!1,u.isAnimating()&&e._lastScale>1.5&&(e._useSmallViewport=!0),e._animationRateSubscription||(e._animationRateSubscription=u.onAnimationFrameRateUpdate(()=>{if(e.renderable.getAutoAdjustSampleDistances()){let l=u.getRecentAnimationFrameRate(),h=u.getDesiredUpdateRate()/l;(h>1.15||h<.85)&&(e._lastScale*=h),e._lastScale>400&&(e._lastScale=400),e._lastScale<1.5&&(e._lastScale=1.5)}else e._lastScale=e.renderable.getImageSampleDistance()*e.renderable.getImageSampleDistance()})),e._useSmallViewport){let l=e._openGLRenderWindow.getFramebufferSize(),h=1/Math.sqrt(e._lastScale);if(e._smallViewportWidth=Math.ceil(h*l[0]),e._smallViewportHeight=Math.ceil(h*l[1]),e._smallViewportHeight>l[1]&&(e._smallViewportHeight=l[1]),e._smallViewportWidth>l[0]&&(e._smallViewportWidth=l[0]),e.framebuffer.saveCurrentBindingsAndBuffers(),e.framebuffer.getGLFramebuffer()===null)e.framebuffer.create(l[0],l[1]),e.framebuffer.populateFramebuffer();else{let p=e.framebuffer.getSize();(!p||p[0]!==l[0]||p[1]!==l[1])&&(e.framebuffer.create(l[0],l[1]),e.framebuffer.populateFramebuffer())}e.framebuffer.bind();let y=e.context;y.clearColor(0,0,0,0),y.colorMask(!0,!0,!0,!0),y.clear(y.COLOR_BUFFER_BIT),y.viewport(0,0,e._smallViewportWidth,e._smallViewportHeight),e.fvp=[e._smallViewportWidth/l[0],e._smallViewportHeight/l[1]]}e.context.disable(e.context.DEPTH_TEST),t.updateBufferObjects(c,f);let g=f.getProperties();e.currentValidInputs.forEach(({inputIndex:l})=>{let h=g[l].getInterpolationType(),y=e.scalarTextures[l];h===da.NEAREST?(y.setMinificationFilter(j.NEAREST),y.setMagnificationFilter(j.NEAREST)):(y.setMinificationFilter(j.LINEAR),y.setMagnificationFilter(j.LINEAR))}),e.zBufferTexture!==null&&e.zBufferTexture.activate()},t.renderPieceDraw=(c,f)=>{let u=e.context,g=[...e.scalarTextures,e.colorTexture,e.opacityTexture,e.labelOutlineThicknessTexture,e.jitterTexture];if(g.forEach(l=>l.activate()),!t.updateShaders(e.tris,c,f)){g.forEach(l=>l.deactivate());return}u.drawArrays(u.TRIANGLES,0,e.tris.getCABO().getElementCount()),e.tris.getVAO().release(),g.forEach(l=>l.deactivate())},t.renderPieceFinish=(c,f)=>{if(e.zBufferTexture!==null&&e.zBufferTexture.deactivate(),e._useSmallViewport){if(e.framebuffer.restorePreviousBindingsAndBuffers(),e.copyShader===null){e.copyShader=e._openGLRenderWindow.getShaderCache().readyShaderProgramArray(["//VTK::System::Dec","attribute vec4 vertexDC;","uniform vec2 tfactor;","varying vec2 tcoord;","void main() { tcoord = vec2(vertexDC.x*0.5 + 0.5, vertexDC.y*0.5 + 0.5) * tfactor; gl_Position = vertexDC; }"].join(`
`),["//VTK::System::Dec","//VTK::Output::Dec","uniform sampler2D texture1;","varying vec2 tcoord;","void main() { gl_FragData[0] = texture2D(texture1,tcoord); }"].join(`
`),"");let h=e.copyShader;e.copyVAO=Er.newInstance(),e.copyVAO.setOpenGLRenderWindow(e._openGLRenderWindow),e.tris.getCABO().bind(),e.copyVAO.addAttributeArray(h,e.tris.getCABO(),"vertexDC",e.tris.getCABO().getVertexOffset(),e.tris.getCABO().getStride(),e.context.FLOAT,3,e.context.FALSE)||xc("Error setting vertexDC in copy shader VAO.")}else e._openGLRenderWindow.getShaderCache().readyShaderProgram(e.copyShader);let u=e._openGLRenderWindow.getFramebufferSize();e.context.viewport(0,0,u[0],u[1]);let g=e.framebuffer.getColorTexture();g.activate(),e.copyShader.setUniformi("texture",g.getTextureUnit()),e.copyShader.setUniform2f("tfactor",e.fvp[0],e.fvp[1]);let l=e.context;l.blendFuncSeparate(l.ONE,l.ONE_MINUS_SRC_ALPHA,l.ONE,l.ONE_MINUS_SRC_ALPHA),e.context.drawArrays(e.context.TRIANGLES,0,e.tris.getCABO().getElementCount()),g.deactivate(),l.blendFuncSeparate(l.SRC_ALPHA,l.ONE_MINUS_SRC_ALPHA,l.ONE,l.ONE_MINUS_SRC_ALPHA)}},t.renderPiece=(c,f)=>{t.invokeEvent({type:"StartEvent"}),e.renderable.update();let u=e.renderable.getNumberOfInputPorts();e.currentValidInputs=[];for(let l=0;l<u;++l){let h=e.renderable.getInputData(l);h&&!h.isDeleted()&&e.currentValidInputs.push({imageData:h,inputIndex:l})}let g=0;if(e.currentValidInputs.length>0){let l=f.getProperties(),h=e.currentValidInputs[0],y=h.imageData.getPointData().getScalars(),p=l[h.inputIndex];p.getShade()&&e.renderable.getBlendMode()===qe.COMPOSITE_BLEND&&c.getLights().forEach(x=>{x.getSwitch()>0&&g++});let v=e.currentValidInputs.length;e.numberOfComponents=v>1?v:y.getNumberOfComponents(),e.useIndependentComponents=p.getUseIndependentComponents(e.numberOfComponents)}g!==e.numberOfLights&&(e.numberOfLights=g,t.modified()),t.invokeEvent({type:"EndEvent"}),e.currentValidInputs.length!==0&&(t.renderPieceStart(c,f),t.renderPieceDraw(c,f),t.renderPieceFinish(c,f))},t.updateBufferObjects=(c,f)=>{t.getNeedToRebuildBufferObjects(c,f)&&t.buildBufferObjects(c,f)},t.getNeedToRebuildBufferObjects=(c,f)=>e.VBOBuildTime.getMTime()<t.getMTime()||e.VBOBuildTime.getMTime()<f.getMTime()||e.VBOBuildTime.getMTime()<f.getProperty(e.currentValidInputs[0].inputIndex)?.getMTime()||e.VBOBuildTime.getMTime()<e.renderable.getMTime()||e.currentValidInputs.some(({imageData:u})=>e.VBOBuildTime.getMTime()<u.getMTime())||e.scalarTextures.length!==e.currentValidInputs.length||!e.scalarTextures.every(u=>!!u?.getHandle())||!e.colorTexture?.getHandle()||!e.opacityTexture?.getHandle()||!e.labelOutlineThicknessTexture?.getHandle()||!e.jitterTexture?.getHandle(),t.buildBufferObjects=(c,f)=>{if(!e.jitterTexture.getHandle()){let R=new Float32Array(1024);for(let E=0;E<1024;++E)R[E]=Math.random();e.jitterTexture.setMinificationFilter(j.NEAREST),e.jitterTexture.setMagnificationFilter(j.NEAREST),e.jitterTexture.create2DFromRaw({width:32,height:32,numComps:1,dataType:ee.FLOAT,data:R})}let u=f.getProperties(),g=u[e.currentValidInputs[0].inputIndex],l=e.numberOfComponents,h=e.useIndependentComponents,y=h?l:1,p=[];for(let R=0;R<y;++R)p.push(g.getScalarOpacity(R));let v=xt(p,h,y),x=g.getScalarOpacity(),S=e._openGLRenderWindow.getGraphicsResourceForObject(x);if(!S?.oglObject?.getHandle()||S.hash!==v){let R=de.newInstance();R.setOpenGLRenderWindow(e._openGLRenderWindow);let E=e.renderable.getOpacityTextureWidth();E<=0&&(E=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let V=E*2*y,N=new Float32Array(V),_=new Float32Array(E);for(let L=0;L<y;++L){let B=g.getScalarOpacity(L),b=t.getCurrentSampleDistance(c)/g.getScalarOpacityUnitDistance(L),G=B.getRange();B.getTable(G[0],G[1],E,_,1);for(let U=0;U<E;++U)N[L*E*2+U]=1-(1-_[U])**b,N[L*E*2+U+E]=N[L*E*2+U]}if(R.resetFormatAndType(),R.setMinificationFilter(j.LINEAR),R.setMagnificationFilter(j.LINEAR),e.context.getExtension("OES_texture_float_linear"))R.create2DFromRaw({width:E,height:2*y,numComps:1,dataType:ee.FLOAT,data:N});else{let L=new Uint8ClampedArray(V);for(let B=0;B<V;++B)L[B]=255*N[B];R.create2DFromRaw({width:E,height:2*y,numComps:1,dataType:ee.UNSIGNED_CHAR,data:L})}x&&e._openGLRenderWindow.setGraphicsResourceForObject(x,R,v),e.opacityTexture=R}else e.opacityTexture=S.oglObject;s(e._openGLRenderWindow,e._opacityTextureCore,x),e._opacityTextureCore=x;let T=[];for(let R=0;R<y;++R)T.push(g.getRGBTransferFunction(R));let d=xt(T,h,y),C=g.getRGBTransferFunction(),w=e._openGLRenderWindow.getGraphicsResourceForObject(C);if(!w?.oglObject?.getHandle()||w?.hash!==d){let R=de.newInstance();R.setOpenGLRenderWindow(e._openGLRenderWindow);let E=e.renderable.getColorTextureWidth();E<=0&&(E=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let V=E*2*y*3,N=new Uint8ClampedArray(V),_=new Float32Array(E*3);for(let L=0;L<y;++L){let B=g.getRGBTransferFunction(L),b=B.getRange();B.getTable(b[0],b[1],E,_,1);for(let G=0;G<E*3;++G)N[L*E*6+G]=255*_[G],N[L*E*6+G+E*3]=255*_[G]}R.resetFormatAndType(),R.setMinificationFilter(j.LINEAR),R.setMagnificationFilter(j.LINEAR),R.create2DFromRaw({width:E,height:2*y,numComps:3,dataType:ee.UNSIGNED_CHAR,data:N}),e._openGLRenderWindow.setGraphicsResourceForObject(C,R,d),e.colorTexture=R}else e.colorTexture=w.oglObject;s(e._openGLRenderWindow,e._colorTextureCore,C),e._colorTextureCore=C,e.currentValidInputs.forEach(({imageData:R,inputIndex:E},V)=>{let N=u[E],_=R.getPointData().getScalars(),L=e._openGLRenderWindow.getGraphicsResourceForObject(_),B=Lr(R,_),b=!L?.oglObject?.getHandle()||L?.hash!==B,G=N.getUpdatedExtents(),U=!!G.length;if(b&&!U){let z=de.newInstance();z.setOpenGLRenderWindow(e._openGLRenderWindow);let A=R.getDimensions();z.setOglNorm16Ext(e.context.getExtension("EXT_texture_norm16")),z.resetFormatAndType(),z.create3DFilterableFromDataArray({width:A[0],height:A[1],depth:A[2],dataArray:_,preferSizeOverAccuracy:N.getPreferSizeOverAccuracy()}),e._openGLRenderWindow.setGraphicsResourceForObject(_,z,B),e.scalarTextures[V]=z}else e.scalarTextures[V]=L.oglObject;if(U){N.setUpdatedExtents([]);let z=R.getDimensions();e.scalarTextures[V].create3DFilterableFromDataArray({width:z[0],height:z[1],depth:z[2],dataArray:_,updatedExtents:G})}s(e._openGLRenderWindow,e._scalarTexturesCore[V],_),e._scalarTexturesCore[V]=_});let D=g.getLabelOutlineThickness(),m=e._openGLRenderWindow.getGraphicsResourceForObject(D),M=D.join("-");if(!m?.oglObject?.getHandle()||m?.hash!==M){let R=de.newInstance();R.setOpenGLRenderWindow(e._openGLRenderWindow);let E=e.renderable.getLabelOutlineTextureWidth();E<=0&&(E=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let V=1,N=E*V,_=new Uint8Array(N);for(let L=0;L<E;++L)_[L]=typeof D[L]<"u"?D[L]:D[0];R.resetFormatAndType(),R.setMinificationFilter(j.NEAREST),R.setMagnificationFilter(j.NEAREST),R.create2DFromRaw({width:E,height:V,numComps:1,dataType:ee.UNSIGNED_CHAR,data:_}),D&&e._openGLRenderWindow.setGraphicsResourceForObject(D,R,M),e.labelOutlineThicknessTexture=R}else e.labelOutlineThicknessTexture=m.oglObject;if(s(e._openGLRenderWindow,e._labelOutlineThicknessTextureCore,D),e._labelOutlineThicknessTextureCore=D,!e.tris.getCABO().getElementCount()){let R=new Float32Array(12);for(let _=0;_<4;_++)R[_*3]=_%2*2-1,R[_*3+1]=_>1?1:-1,R[_*3+2]=-1;let E=new Uint16Array(8);E[0]=3,E[1]=0,E[2]=1,E[3]=3,E[4]=3,E[5]=0,E[6]=3,E[7]=2;let V=Y.newInstance({numberOfComponents:3,values:R});V.setName("points");let N=be.newInstance({values:E});e.tris.getCABO().createVBO(N,"polys",Ke.SURFACE,{points:V,cellOffset:0,forceFlatten:!0})}e.VBOBuildTime.modified()}}var IR={context:null,VBOBuildTime:null,scalarTextures:[],_scalarTexturesCore:[],opacityTexture:null,_opacityTextureCore:null,colorTexture:null,_colorTextureCore:null,labelOutlineThicknessTexture:null,_labelOutlineThicknessTextureCore:null,jitterTexture:null,tris:null,framebuffer:null,copyShader:null,copyVAO:null,lastXYF:1,targetXYF:1,zBufferTexture:null,lastZBufferTexture:null,fullViewportTime:1,idxToView:null,vecISToVCMatrix:null,modelToView:null,projectionToView:null,avgWindowArea:0,avgFrameTime:0};function jR(t,e,n={}){Object.assign(e,IR,n),ue.extend(t,e,n),nt.implementBuildShadersWithReplacements(t,e,n),e.VBOBuildTime={},se(e.VBOBuildTime,{mtime:0}),e.tris=Ye.newInstance(),e.jitterTexture=de.newInstance(),e.jitterTexture.setWrapS(bn.REPEAT),e.jitterTexture.setWrapT(bn.REPEAT),e.framebuffer=xn.newInstance(),ie(t,e,["context"]),HR(t,e)}var $R=J(jR,"vtkOpenGLVolumeMapper");le("vtkVolumeMapper",$R);var yn={MAX:0,MIN:1,AVERAGE:2};var{vtkErrorMacro:Qi}=O;function KR(t,e){e.classHierarchy.push("vtkOpenGLImageCPRMapper");function n(r){[e._scalars,e._colorTransferFunc,e._pwFunc].forEach(a=>r.unregisterGraphicsResourceUser(a,t))}t.buildPass=r=>{if(r){e.currentRenderPass=null,e.openGLImageSlice=t.getFirstAncestorOfType("vtkOpenGLImageSlice"),e._openGLRenderer=t.getFirstAncestorOfType("vtkOpenGLRenderer");let a=e._openGLRenderWindow;e._openGLRenderWindow=e._openGLRenderer.getLastAncestorOfType("vtkOpenGLRenderWindow"),a&&!a.isDeleted()&&a!==e._openGLRenderWindow&&n(a),e.context=e._openGLRenderWindow.getContext(),e.openGLCamera=e._openGLRenderer.getViewNodeFor(e._openGLRenderer.getRenderable().getActiveCamera(),e.openGLCamera),e.tris.setOpenGLRenderWindow(e._openGLRenderWindow)}},t.opaquePass=(r,a)=>{r&&(e.currentRenderPass=a,t.render())},t.opaqueZBufferPass=r=>{r&&(e.haveSeenDepthRequest=!0,e.renderDepth=!0,t.render(),e.renderDepth=!1)},t.getCoincidentParameters=(r,a)=>e.renderable.getResolveCoincidentTopology()===tt.PolygonOffset?e.renderable.getCoincidentTopologyPolygonOffsetParameters():null,t.render=()=>{let r=e.openGLImageSlice.getRenderable(),a=e._openGLRenderer.getRenderable();t.renderPiece(a,r)},t.renderPiece=(r,a)=>{t.invokeEvent({type:"StartEvent"}),e.renderable.update(),t.invokeEvent({type:"EndEvent"}),e.renderable.preRenderCheck()&&(e.currentImageDataInput=e.renderable.getInputData(0),e.currentCenterlineInput=e.renderable.getOrientedCenterline(),t.renderPieceStart(r,a),t.renderPieceDraw(r,a),t.renderPieceFinish(r,a))},t.renderPieceStart=(r,a)=>{t.updateBufferObjects(r,a)},t.renderPieceDraw=(r,a)=>{let i=e.context;e.volumeTexture.activate(),e.colorTexture.activate(),e.pwfTexture.activate(),e.tris.getCABO().getElementCount()&&(t.updateShaders(e.tris,r,a),i.drawArrays(i.TRIANGLES,0,e.tris.getCABO().getElementCount()),e.tris.getVAO().release()),e.volumeTexture.deactivate(),e.colorTexture.deactivate(),e.pwfTexture.deactivate()},t.renderPieceFinish=(r,a)=>{},t.updateBufferObjects=(r,a)=>{t.getNeedToRebuildBufferObjects(r,a)&&t.buildBufferObjects(r,a),a.getProperty().getInterpolationType()===tn.NEAREST?(e.volumeTexture.setMinificationFilter(j.NEAREST),e.volumeTexture.setMagnificationFilter(j.NEAREST),e.colorTexture.setMinificationFilter(j.NEAREST),e.colorTexture.setMagnificationFilter(j.NEAREST),e.pwfTexture.setMinificationFilter(j.NEAREST),e.pwfTexture.setMagnificationFilter(j.NEAREST)):(e.volumeTexture.setMinificationFilter(j.LINEAR),e.volumeTexture.setMagnificationFilter(j.LINEAR),e.colorTexture.setMinificationFilter(j.LINEAR),e.colorTexture.setMagnificationFilter(j.LINEAR),e.pwfTexture.setMinificationFilter(j.LINEAR),e.pwfTexture.setMagnificationFilter(j.LINEAR))},t.getNeedToRebuildBufferObjects=(r,a)=>{let i=e.VBOBuildTime.getMTime();return i<t.getMTime()||i<e.renderable.getMTime()||i<a.getMTime()||i<e.currentImageDataInput.getMTime()||i<e.currentCenterlineInput.getMTime()||!e.volumeTexture?.getHandle()},t.buildBufferObjects=(r,a)=>{let i=e.currentImageDataInput,s=e.currentCenterlineInput,o=a.getProperty(),c=i?.getPointData()?.getScalars();if(!c)return;let f=e._openGLRenderWindow.getGraphicsResourceForObject(c),u=Lr(i,c),g=!f?.oglObject?.getHandle()||f?.hash!==u,l=o.getUpdatedExtents(),h=!!l.length;if(g){e.volumeTexture=de.newInstance(),e.volumeTexture.setOpenGLRenderWindow(e._openGLRenderWindow);let E=i.getDimensions();e.volumeTexture.setOglNorm16Ext(e.context.getExtension("EXT_texture_norm16")),e.volumeTexture.resetFormatAndType(),e.volumeTexture.create3DFilterableFromDataArray({width:E[0],height:E[1],depth:E[2],dataArray:c,preferSizeOverAccuracy:e.renderable.getPreferSizeOverAccuracy()}),e._openGLRenderWindow.setGraphicsResourceForObject(c,e.volumeTexture,u),c!==e._scalars&&(e._openGLRenderWindow.registerGraphicsResourceUser(c,t),e._openGLRenderWindow.unregisterGraphicsResourceUser(e._scalars,t)),e._scalars=c}else e.volumeTexture=f.oglObject;if(h){o.setUpdatedExtents([]);let E=i.getDimensions();e.volumeTexture.create3DFilterableFromDataArray({width:E[0],height:E[1],depth:E[2],dataArray:c,updatedExtents:l})}let y=c.getNumberOfComponents(),p=a.getProperty(),v=p.getIndependentComponents(),x=v?y:1,S=v?2*x:1,T=[];for(let E=0;E<x;++E)T.push(p.getRGBTransferFunction(E));let d=xt(T,v,x),C=p.getRGBTransferFunction(),w=e._openGLRenderWindow.getGraphicsResourceForObject(C);if(!w?.oglObject?.getHandle()||w?.hash!==d){let E=e.renderable.getColorTextureWidth();E<=0&&(E=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let V=E*S*3,N=new Uint8ClampedArray(V);if(e.colorTexture=de.newInstance(),e.colorTexture.setOpenGLRenderWindow(e._openGLRenderWindow),C){let _=new Float32Array(E*3);for(let L=0;L<x;L++){let B=p.getRGBTransferFunction(L),b=B.getRange();if(B.getTable(b[0],b[1],E,_,1),v)for(let G=0;G<E*3;G++)N[L*E*6+G]=255*_[G],N[L*E*6+G+E*3]=255*_[G];else for(let G=0;G<E*3;G++)N[L*E*6+G]=255*_[G]}e.colorTexture.resetFormatAndType(),e.colorTexture.create2DFromRaw({width:E,height:S,numComps:3,dataType:ee.UNSIGNED_CHAR,data:N})}else{for(let _=0;_<E*3;++_)N[_]=255*_/((E-1)*3),N[_+1]=255*_/((E-1)*3),N[_+2]=255*_/((E-1)*3);e.colorTexture.resetFormatAndType(),e.colorTexture.create2DFromRaw({width:E,height:1,numComps:3,dataType:ee.UNSIGNED_CHAR,data:N})}C&&(e._openGLRenderWindow.setGraphicsResourceForObject(C,e.colorTexture,d),C!==e._colorTransferFunc&&(e._openGLRenderWindow.registerGraphicsResourceUser(C,t),e._openGLRenderWindow.unregisterGraphicsResourceUser(e._colorTransferFunc,t)),e._colorTransferFunc=C)}else e.colorTexture=w.oglObject;let D=[];for(let E=0;E<x;++E)D.push(p.getPiecewiseFunction(E));let m=xt(D,v,x),M=p.getPiecewiseFunction(),R=e._openGLRenderWindow.getGraphicsResourceForObject(M);if(!R?.oglObject?.getHandle()||R?.hash!==m){let E=e.renderable.getOpacityTextureWidth();E<=0&&(E=e.context.getParameter(e.context.MAX_TEXTURE_SIZE));let V=E*S,N=new Uint8ClampedArray(V);if(e.pwfTexture=de.newInstance(),e.pwfTexture.setOpenGLRenderWindow(e._openGLRenderWindow),M){let _=new Float32Array(V),L=new Float32Array(E);for(let B=0;B<x;++B){let b=p.getPiecewiseFunction(B);if(b===null)_.fill(1);else{let G=b.getRange();if(b.getTable(G[0],G[1],E,L,1),v)for(let U=0;U<E;U++)_[B*E*2+U]=L[U],_[B*E*2+U+E]=L[U];else for(let U=0;U<E;U++)_[B*E*2+U]=L[U]}}e.pwfTexture.resetFormatAndType(),e.pwfTexture.create2DFromRaw({width:E,height:S,numComps:1,dataType:ee.FLOAT,data:_})}else N.fill(255),e.pwfTexture.resetFormatAndType(),e.pwfTexture.create2DFromRaw({width:E,height:1,numComps:1,dataType:ee.UNSIGNED_CHAR,data:N});M&&(e._openGLRenderWindow.setGraphicsResourceForObject(M,e.pwfTexture,m),M!==e._pwFunc&&(e._openGLRenderWindow.registerGraphicsResourceUser(M,t),e._openGLRenderWindow.unregisterGraphicsResourceUser(e._pwFunc,t)),e._pwFunc=M)}else e.pwfTexture=R.oglObject;if(e.VBOBuildTime.getMTime()<e.renderable.getMTime()||e.VBOBuildTime.getMTime()<s.getMTime()){let E=s.getNumberOfPoints(),V=E<=1?0:E-1,N=s.getDistancesToFirstPoint(),_=e.renderable.getHeight(),L=4*V,B=new Float32Array(3*L),b=e.renderable.getWidth();for(let P=0,H=0;P<V;++P)B.set([0,_-N[P],0],H),H+=3,B.set([b,_-N[P],0],H),H+=3,B.set([b,_-N[P+1],0],H),H+=3,B.set([0,_-N[P+1],0],H),H+=3;let G=Y.newInstance({numberOfComponents:3,values:B});G.setName("points");let U=new Uint16Array(5*V);for(let P=0,H=0,fe=0;P<V;++P)U.set([4,fe+3,fe+2,fe+1,fe],H),H+=5,fe+=4;let z=be.newInstance({values:U}),A=s.getPoints(),Q=new Float32Array(3*L),X=new Array(3),te=new Array(3);for(let P=0,H=0;P<V;++P)A.getPoint(P,X),A.getPoint(P+1,te),Q.set(X,H),H+=3,Q.set(X,H),H+=3,Q.set(te,H),H+=3,Q.set(te,H),H+=3;let I=Y.newInstance({numberOfComponents:3,values:Q,name:"centerlinePosition"}),oe=new Float32Array(L);for(let P=0,H=0;P<V;++P)oe.set([0,1,3,2],H),H+=4;let ae=[I,Y.newInstance({numberOfComponents:1,values:oe,name:"quadIndex"})];if(!e.renderable.getUseUniformOrientation()){let P=e.renderable.getOrientedCenterline().getOrientations()??[],H=new Float32Array(4*L),fe=new Float32Array(4*L);for(let De=0;De<V;++De){let he=P[De],St=P[De+1];for(let Ve=0;Ve<4;++Ve){let Ie=4*(Ve+4*De);H.set(he,Ie),fe.set(St,Ie)}}let pe=Y.newInstance({numberOfComponents:4,values:H,name:"centerlineTopOrientation"}),He=Y.newInstance({numberOfComponents:4,values:fe,name:"centerlineBotOrientation"});ae.push(pe,He)}e.tris.getCABO().createVBO(z,"polys",Ke.SURFACE,{points:G,customAttributes:ae,forceFlatten:!0}),e.VBOBuildTime.modified()}},t.getNeedToRebuildShaders=(r,a,i)=>{let s=e.volumeTexture.getComponents(),o=i.getProperty().getIndependentComponents(),c=!!e.renderable.getCenterPoint(),f=e.renderable.getUseUniformOrientation(),u=e.renderable.isProjectionEnabled()&&e.renderable.getProjectionMode();return r.getProgram()===0||e.lastUseCenterPoint!==c||e.lastUseUniformOrientation!==f||e.lastProjectionMode!==u||e.lastHaveSeenDepthRequest!==e.haveSeenDepthRequest||e.lastTextureComponents!==s||e.lastIndependentComponents!==o?(e.lastUseCenterPoint=c,e.lastUseUniformOrientation=f,e.lastProjectionMode=u,e.lastHaveSeenDepthRequest=e.haveSeenDepthRequest,e.lastTextureComponents=s,e.lastIndependentComponents=o,!0):!1},t.buildShaders=(r,a,i)=>{t.getShaderTemplate(r,a,i),t.replaceShaderValues(r,a,i)},t.replaceShaderValues=(r,a,i)=>{let s=r.Vertex,o=r.Fragment,c=["vec3 applyQuaternionToVec(vec4 q, vec3 v) {","  float uvx = q.y * v.z - q.z * v.y;","  float uvy = q.z * v.x - q.x * v.z;","  float uvz = q.x * v.y - q.y * v.x;","  float uuvx = q.y * uvz - q.z * uvy;","  float uuvy = q.z * uvx - q.x * uvz;","  float uuvz = q.x * uvy - q.y * uvx;","  float w2 = q.w * 2.0;","  uvx *= w2;","  uvy *= w2;","  uvz *= w2;","  uuvx *= 2.0;","  uuvy *= 2.0;","  uuvz *= 2.0;","  return vec3(v.x + uvx + uuvx, v.y + uvy + uuvy, v.z + uvz + uuvz);","}"];s=k.substitute(s,"//VTK::Camera::Dec",["uniform mat4 MCPCMatrix;"]).result,s=k.substitute(s,"//VTK::PositionVC::Impl",["  gl_Position = MCPCMatrix * vertexMC;"]).result;let f=["attribute vec3 centerlinePosition;","attribute float quadIndex;","uniform float width;","out vec2 quadOffsetVSOutput;","out vec3 centerlinePosVSOutput;"],u=e.renderable.isProjectionEnabled(),g=e.renderable.getUseUniformOrientation();g?(f.push("out vec3 samplingDirVSOutput;","uniform vec4 centerlineOrientation;","uniform vec3 tangentDirection;",...c),u&&f.push("out vec3 projectionDirVSOutput;","uniform vec3 bitangentDirection;")):f.push("out vec4 centerlineTopOrientationVSOutput;","out vec4 centerlineBotOrientationVSOutput;","attribute vec4 centerlineTopOrientation;","attribute vec4 centerlineBotOrientation;"),s=k.substitute(s,"//VTK::Color::Dec",f).result;let l=["quadOffsetVSOutput = vec2(width * (mod(quadIndex, 2.0) == 0.0 ? -0.5 : 0.5), quadIndex > 1.0 ? 0.0 : 1.0);","centerlinePosVSOutput = centerlinePosition;"];g?(l.push("samplingDirVSOutput = applyQuaternionToVec(centerlineOrientation, tangentDirection);"),u&&l.push("projectionDirVSOutput = applyQuaternionToVec(centerlineOrientation, bitangentDirection);")):l.push("centerlineTopOrientationVSOutput = centerlineTopOrientation;","centerlineBotOrientationVSOutput = centerlineBotOrientation;"),s=k.substitute(s,"//VTK::Color::Impl",l).result;let h=e.volumeTexture.getComponents(),y=i.getProperty().getIndependentComponents(),p=["uniform mat4 MCTCMatrix; // Model coordinates to texture coordinates","in vec2 quadOffsetVSOutput;","in vec3 centerlinePosVSOutput;","uniform highp sampler3D volumeTexture;","uniform sampler2D colorTexture1;","uniform sampler2D pwfTexture1;","uniform float opacity;","uniform vec4 backgroundColor;","uniform float cshift0;","uniform float cscale0;","uniform float pwfshift0;","uniform float pwfscale0;"];u&&p.push("uniform int projectionSlabNumberOfSamples;","uniform float projectionConstantOffset;","uniform float projectionStepLength;"),g?(p.push("in vec3 samplingDirVSOutput;"),u&&p.push("in vec3 projectionDirVSOutput;")):(p.push("uniform vec3 tangentDirection;","in vec4 centerlineTopOrientationVSOutput;","in vec4 centerlineBotOrientationVSOutput;",...c),u&&p.push("uniform vec3 bitangentDirection;"));let v=e.renderable.getCenterPoint();if(v&&p.push("uniform vec3 globalCenterPoint;"),y){for(let S=1;S<h;S++)p=p.concat([`uniform float cshift${S};`,`uniform float cscale${S};`,`uniform float pwfshift${S};`,`uniform float pwfscale${S};`]);switch(h){case 1:p=p.concat(["uniform float mix0;","#define height0 0.5"]);break;case 2:p=p.concat(["uniform float mix0;","uniform float mix1;","#define height0 0.25","#define height1 0.75"]);break;case 3:p=p.concat(["uniform float mix0;","uniform float mix1;","uniform float mix2;","#define height0 0.17","#define height1 0.5","#define height2 0.83"]);break;case 4:p=p.concat(["uniform float mix0;","uniform float mix1;","uniform float mix2;","uniform float mix3;","#define height0 0.125","#define height1 0.375","#define height2 0.625","#define height3 0.875"]);break;default:Qi("Unsupported number of independent coordinates.")}}o=k.substitute(o,"//VTK::TCoord::Dec",p).result;let x=[];if(g?(x.push("vec3 samplingDirection = samplingDirVSOutput;"),u&&x.push("vec3 projectionDirection = projectionDirVSOutput;")):(x.push("vec4 q0 = centerlineBotOrientationVSOutput;","vec4 q1 = centerlineTopOrientationVSOutput;","float qCosAngle = dot(q0, q1);","vec4 interpolatedOrientation;","if (qCosAngle > 0.999 || qCosAngle < -0.999) {","  // Use LERP instead of SLERP when the two quaternions are close or opposite","  interpolatedOrientation = normalize(mix(q0, q1, quadOffsetVSOutput.y));","} else {","  float omega = acos(qCosAngle);","  interpolatedOrientation = normalize(sin((1.0 - quadOffsetVSOutput.y) * omega) * q0 + sin(quadOffsetVSOutput.y * omega) * q1);","}","vec3 samplingDirection = applyQuaternionToVec(interpolatedOrientation, tangentDirection);"),u&&x.push("vec3 projectionDirection = applyQuaternionToVec(interpolatedOrientation, bitangentDirection);")),v?x.push("float baseOffset = dot(samplingDirection, globalCenterPoint - centerlinePosVSOutput);","float horizontalOffset = quadOffsetVSOutput.x + baseOffset;"):x.push("float horizontalOffset = quadOffsetVSOutput.x;"),x.push("vec3 volumePosMC = centerlinePosVSOutput + horizontalOffset * samplingDirection;","vec3 volumePosTC = (MCTCMatrix * vec4(volumePosMC, 1.0)).xyz;","if (any(lessThan(volumePosTC, vec3(0.0))) || any(greaterThan(volumePosTC, vec3(1.0))))","{","  // set the background color and exit","  gl_FragData[0] = backgroundColor;","  return;","}"),u){let S=e.renderable.getProjectionMode();switch(S){case yn.MIN:x.push("const vec4 initialProjectionTextureValue = vec4(1.0);");break;case yn.MAX:case yn.AVERAGE:default:x.push("const vec4 initialProjectionTextureValue = vec4(0.0);");break}switch(x.push("vec3 projectionScaledDirection = (MCTCMatrix * vec4(projectionDirection, 0.0)).xyz;","vec3 projectionStep = projectionStepLength * projectionScaledDirection;","vec3 projectionStartPosition = volumePosTC + projectionConstantOffset * projectionScaledDirection;","vec4 tvalue = initialProjectionTextureValue;","for (int projectionSampleIdx = 0; projectionSampleIdx < projectionSlabNumberOfSamples; ++projectionSampleIdx) {","  vec3 projectionSamplePosition = projectionStartPosition + float(projectionSampleIdx) * projectionStep;","  vec4 sampledTextureValue = texture(volumeTexture, projectionSamplePosition);"),S){case yn.MAX:x.push("  tvalue = max(tvalue, sampledTextureValue);");break;case yn.MIN:x.push("  tvalue = min(tvalue, sampledTextureValue);");break;case yn.AVERAGE:default:x.push("  tvalue = tvalue + sampledTextureValue;");break}x.push("}"),S===yn.AVERAGE&&x.push("tvalue = tvalue / float(projectionSlabNumberOfSamples);")}else x.push("vec4 tvalue = texture(volumeTexture, volumePosTC);");if(y){let S=["r","g","b","a"];for(let T=0;T<h;++T)x=x.concat([`vec3 tcolor${T} = mix${T} * texture2D(colorTexture1, vec2(tvalue.${S[T]} * cscale${T} + cshift${T}, height${T})).rgb;`,`float compWeight${T} = mix${T} * texture2D(pwfTexture1, vec2(tvalue.${S[T]} * pwfscale${T} + pwfshift${T}, height${T})).r;`]);switch(h){case 1:x=x.concat(["gl_FragData[0] = vec4(tcolor0.rgb, compWeight0 * opacity);"]);break;case 2:x=x.concat(["float weightSum = compWeight0 + compWeight1;","gl_FragData[0] = vec4(vec3((tcolor0.rgb * (compWeight0 / weightSum)) + (tcolor1.rgb * (compWeight1 / weightSum))), opacity);"]);break;case 3:x=x.concat(["float weightSum = compWeight0 + compWeight1 + compWeight2;","gl_FragData[0] = vec4(vec3((tcolor0.rgb * (compWeight0 / weightSum)) + (tcolor1.rgb * (compWeight1 / weightSum)) + (tcolor2.rgb * (compWeight2 / weightSum))), opacity);"]);break;case 4:x=x.concat(["float weightSum = compWeight0 + compWeight1 + compWeight2 + compWeight3;","gl_FragData[0] = vec4(vec3((tcolor0.rgb * (compWeight0 / weightSum)) + (tcolor1.rgb * (compWeight1 / weightSum)) + (tcolor2.rgb * (compWeight2 / weightSum)) + (tcolor3.rgb * (compWeight3 / weightSum))), opacity);"]);break;default:Qi("Unsupported number of independent coordinates.")}}else switch(h){case 1:x=x.concat(["// Dependent components","float intensity = tvalue.r;","vec3 tcolor = texture2D(colorTexture1, vec2(intensity * cscale0 + cshift0, 0.5)).rgb;","float scalarOpacity = texture2D(pwfTexture1, vec2(intensity * pwfscale0 + pwfshift0, 0.5)).r;","gl_FragData[0] = vec4(tcolor, scalarOpacity * opacity);"]);break;case 2:x=x.concat(["float intensity = tvalue.r*cscale0 + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(intensity, 0.5)).rgb, pwfscale0*tvalue.g + pwfshift0);"]);break;case 3:x=x.concat(["vec4 tcolor = cscale0*tvalue + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(tcolor.r,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.g,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.b,0.5)).r, opacity);"]);break;default:x=x.concat(["vec4 tcolor = cscale0*tvalue + cshift0;","gl_FragData[0] = vec4(texture2D(colorTexture1, vec2(tcolor.r,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.g,0.5)).r,","  texture2D(colorTexture1, vec2(tcolor.b,0.5)).r, tcolor.a);"])}o=k.substitute(o,"//VTK::TCoord::Impl",x).result,e.haveSeenDepthRequest&&(o=k.substitute(o,"//VTK::ZBuffer::Dec","uniform int depthRequest;").result,o=k.substitute(o,"//VTK::ZBuffer::Impl",["if (depthRequest == 1) {","float iz = floor(gl_FragCoord.z*65535.0 + 0.1);","float rf = floor(iz/256.0)/255.0;","float gf = mod(iz,256.0)/255.0;","gl_FragData[0] = vec4(rf, gf, 0.0, 1.0); }"]).result),r.Vertex=s,r.Fragment=o,t.replaceShaderClip(r,a,i),t.replaceShaderCoincidentOffset(r,a,i)},t.replaceShaderClip=(r,a,i)=>{let s=r.Vertex,o=r.Fragment;if(e.renderable.getNumberOfClippingPlanes()){let c=e.renderable.getNumberOfClippingPlanes();c>6&&(O.vtkErrorMacro("OpenGL has a limit of 6 clipping planes"),c=6),s=k.substitute(s,"//VTK::Clip::Dec",["uniform int numClipPlanes;","uniform vec4 clipPlanes[6];","varying float clipDistancesVSOutput[6];"]).result,s=k.substitute(s,"//VTK::Clip::Impl",["for (int planeNum = 0; planeNum < 6; planeNum++)","    {","    if (planeNum >= numClipPlanes)","        {","        break;","        }","    clipDistancesVSOutput[planeNum] = dot(clipPlanes[planeNum], vertexMC);","    }"]).result,o=k.substitute(o,"//VTK::Clip::Dec",["uniform int numClipPlanes;","varying float clipDistancesVSOutput[6];"]).result,o=k.substitute(o,"//VTK::Clip::Impl",["for (int planeNum = 0; planeNum < 6; planeNum++)","    {","    if (planeNum >= numClipPlanes)","        {","        break;","        }","    if (clipDistancesVSOutput[planeNum] < 0.0) discard;","    }"]).result}r.Vertex=s,r.Fragment=o},t.getShaderTemplate=(r,a,i)=>{r.Vertex=Dr,r.Fragment=Vr,r.Geometry=""},t.setMapperShaderParameters=(r,a,i)=>{let s=r.getProgram(),o=r.getCABO();o.getElementCount()&&(e.VBOBuildTime.getMTime()>r.getAttributeUpdateTime().getMTime()||r.getShaderSourceTime().getMTime()>r.getAttributeUpdateTime().getMTime())&&(s.isAttributeUsed("vertexMC")&&(r.getVAO().addAttributeArray(s,o,"vertexMC",o.getVertexOffset(),o.getStride(),e.context.FLOAT,3,e.context.FALSE)||Qi("Error setting vertexMC in shader VAO.")),r.getCABO().getCustomData().forEach(h=>{h&&s.isAttributeUsed(h.name)&&!r.getVAO().addAttributeArray(s,o,h.name,h.offset,o.getStride(),e.context.FLOAT,h.components,e.context.FALSE)&&Qi(`Error setting ${h.name} in shader VAO.`)}),r.getAttributeUpdateTime().modified());let c=e.volumeTexture.getTextureUnit();if(s.setUniformi("volumeTexture",c),s.setUniformf("width",e.renderable.getWidth()),r.getProgram().setUniform4fv("backgroundColor",e.renderable.getBackgroundColor()),s.isUniformUsed("tangentDirection")){let h=e.renderable.getTangentDirection();r.getProgram().setUniform3fArray("tangentDirection",h)}if(s.isUniformUsed("bitangentDirection")){let h=e.renderable.getBitangentDirection();r.getProgram().setUniform3fArray("bitangentDirection",h)}if(s.isUniformUsed("centerlineOrientation")){let h=e.renderable.getUniformOrientation();r.getProgram().setUniform4fv("centerlineOrientation",h)}if(s.isUniformUsed("globalCenterPoint")){let h=e.renderable.getCenterPoint();s.setUniform3fArray("globalCenterPoint",h)}if(e.renderable.isProjectionEnabled()){let h=e.renderable.getProjectionSlabThickness(),y=e.renderable.getProjectionSlabNumberOfSamples();s.setUniformi("projectionSlabNumberOfSamples",y);let p=-.5*h;s.setUniformf("projectionConstantOffset",p);let v=h/(y-1);s.setUniformf("projectionStepLength",v)}let f=e.currentImageDataInput,u=f.getWorldToIndex(),g=F.fromScaling(new Float32Array(16),W.inverse([],f.getDimensions())),l=F.mul(g,g,u);if(s.setUniformMatrix("MCTCMatrix",l),e.haveSeenDepthRequest&&r.getProgram().setUniformi("depthRequest",e.renderDepth?1:0),e.renderable.getNumberOfClippingPlanes()){let h=e.renderable.getNumberOfClippingPlanes();h>6&&(O.vtkErrorMacro("OpenGL has a limit of 6 clipping planes"),h=6);let y=o.getCoordShiftAndScaleEnabled()?o.getInverseShiftAndScaleMatrix():null,p=y?F.copy(e.imagematinv,i.getMatrix()):i.getMatrix();y&&(F.transpose(p,p),F.multiply(p,p,y),F.transpose(p,p)),F.transpose(e.imagemat,e.currentImageDataInput.getIndexToWorld()),F.multiply(e.imagematinv,p,e.imagemat);let v=[];for(let x=0;x<h;x++){let S=[];e.renderable.getClippingPlaneInDataCoords(e.imagematinv,x,S);for(let T=0;T<4;T++)v.push(S[T])}s.setUniformi("numClipPlanes",h),s.setUniform4fv("clipPlanes",v)}if(s.isUniformUsed("coffset")){let h=t.getCoincidentParameters(a,i);s.setUniformf("coffset",h.offset),s.isUniformUsed("cfactor")&&s.setUniformf("cfactor",h.factor)}},t.setCameraShaderParameters=(r,a,i)=>{let s=e.openGLImageSlice.getKeyMatrices().mcwc,o=e.openGLCamera.getKeyMatrices(a).wcpc;if(F.multiply(e.imagemat,o,s),r.getCABO().getCoordShiftAndScaleEnabled()){let c=r.getCABO().getInverseShiftAndScaleMatrix();F.multiply(e.imagemat,e.imagemat,c)}r.getProgram().setUniformMatrix("MCPCMatrix",e.imagemat)},t.setPropertyShaderParameters=(r,a,i)=>{let s=r.getProgram(),o=i.getProperty(),c=o.getOpacity();s.setUniformf("opacity",c);let f=e.volumeTexture.getComponents(),u=o.getIndependentComponents();if(u)for(let y=0;y<f;++y)s.setUniformf(`mix${y}`,o.getComponentWeight(y));let g=e.volumeTexture.getVolumeInfo();for(let y=0;y<f;y++){let p=o.getColorWindow(),v=o.getColorLevel(),x=u?y:0,S=o.getRGBTransferFunction(x);if(S&&o.getUseLookupTableScalarRange()){let C=S.getRange();p=C[1]-C[0],v=.5*(C[1]+C[0])}let T=g.scale[y]/p,d=(g.offset[y]-v)/p+.5;s.setUniformf(`cshift${y}`,d),s.setUniformf(`cscale${y}`,T)}let l=e.colorTexture.getTextureUnit();s.setUniformi("colorTexture1",l);for(let y=0;y<f;y++){let p=1,v=0,x=u?y:0,S=o.getPiecewiseFunction(x);if(S){let T=S.getRange(),d=T[1]-T[0],C=.5*(T[0]+T[1]);p=g.scale[y]/d,v=(g.offset[y]-C)/d+.5}s.setUniformf(`pwfshift${y}`,v),s.setUniformf(`pwfscale${y}`,p)}let h=e.pwfTexture.getTextureUnit();s.setUniformi("pwfTexture1",h)},t.updateShaders=(r,a,i)=>{if(t.getNeedToRebuildShaders(r,a,i)){let s={Vertex:null,Fragment:null,Geometry:null};t.buildShaders(s,a,i);let o=e._openGLRenderWindow.getShaderCache().readyShaderProgramArray(s.Vertex,s.Fragment,s.Geometry);o!==r.getProgram()&&(r.setProgram(o),r.getVAO().releaseGraphicsResources()),r.getShaderSourceTime().modified()}else e._openGLRenderWindow.getShaderCache().readyShaderProgram(r.getProgram());r.getVAO().bind(),t.setMapperShaderParameters(r,a,i),t.setCameraShaderParameters(r,a,i),t.setPropertyShaderParameters(r,a,i)},t.delete=O.chain(()=>{e._openGLRenderWindow&&n(e._openGLRenderWindow)},t.delete)}var XR={currentRenderPass:null,volumeTexture:null,colorTexture:null,pwfTexture:null,tris:null,lastHaveSeenDepthRequest:!1,haveSeenDepthRequest:!1,lastTextureComponents:0,lastIndependentComponents:0,imagemat:null,imagematinv:null};function qh(t,e,n={}){Object.assign(e,XR,n),ue.extend(t,e,n),nt.implementReplaceShaderCoincidentOffset(t,e,n),O.algo(t,e,2,0),e.tris=Ye.newInstance(),e.volumeTexture=null,e.colorTexture=null,e.pwfTexture=null,e.imagemat=F.identity(new Float64Array(16)),e.imagematinv=F.identity(new Float64Array(16)),e.VBOBuildTime={},O.obj(e.VBOBuildTime,{mtime:0}),KR(t,e)}var Zh=O.newInstance(qh,"vtkOpenGLImageCPRMapper"),YR={},xz={newInstance:Zh,extend:qh,...YR};le("vtkImageCPRMapper",Zh);var{vtkErrorMacro:Ji}=O;function qR(t,e){e.classHierarchy.push("vtkPiecewiseFunction"),t.getSize=()=>e.nodes.length,t.getType=()=>{let n,r=0,a=0;e.nodes.length>0&&(r=e.nodes[0].y);for(let i=1;i<e.nodes.length;i++){if(n=e.nodes[i].y,n!==r)if(n>r)switch(a){case 0:case 1:a=1;break;default:a=3;break}else switch(a){case 0:case 2:a=2;break;default:a=3;break}if(r=n,a===3)break}switch(a){case 0:return"Constant";case 1:return"NonDecreasing";case 2:return"NonIncreasing";default:return"Varied"}},t.getDataPointer=()=>{let n=e.nodes.length;if(e.function=null,n>0){e.function=[];for(let r=0;r<n;r++)e.function[2*r]=e.nodes[r].x,e.function[2*r+1]=e.nodes[r].y}return e.function},t.getFirstNonZeroValue=()=>{if(e.nodes.length===0)return 0;let n=1,r=0,a=0;for(;a<e.nodes.length;a++)if(e.nodes[a].y!==0){n=0;break}return n?r=Number.MAX_VALUE:a>0?r=e.nodes[a-1].x:e.clamping?r=-Number.MAX_VALUE:r=e.nodes[0].x,r},t.getNodeValue=(n,r)=>{let a=e.nodes.length;return n<0||n>=a?(Ji("Index out of range!"),-1):(r[0]=e.nodes[n].x,r[1]=e.nodes[n].y,r[2]=e.nodes[n].midpoint,r[3]=e.nodes[n].sharpness,1)},t.setNodeValue=(n,r)=>{let a=e.nodes.length;if(n<0||n>=a)return Ji("Index out of range!"),-1;let i=e.nodes[n].x;return e.nodes[n].x=r[0],e.nodes[n].y=r[1],e.nodes[n].midpoint=r[2],e.nodes[n].sharpness=r[3],i!==r[0]?t.sortAndUpdateRange():t.modified(),1},t.addPoint=(n,r)=>t.addPointLong(n,r,.5,0),t.addPointLong=(n,r,a,i)=>{if(a<0||a>1)return Ji("Midpoint outside range [0.0, 1.0]"),-1;if(i<0||i>1)return Ji("Sharpness outside range [0.0, 1.0]"),-1;e.allowDuplicateScalars||t.removePoint(n);let s={x:n,y:r,midpoint:a,sharpness:i};e.nodes.push(s),t.sortAndUpdateRange();let o;for(o=0;o<e.nodes.length&&e.nodes[o].x!==n;o++);return o<e.nodes.length?o:-1},t.setNodes=n=>{e.nodes!==n&&(e.nodes=n,t.sortAndUpdateRange())},t.sortAndUpdateRange=()=>{e.nodes.sort((n,r)=>n.x-r.x),t.updateRange()||t.modified()},t.updateRange=()=>{let n=e.range.slice(),r=e.nodes.length;return r?(e.range[0]=e.nodes[0].x,e.range[1]=e.nodes[r-1].x):(e.range[0]=0,e.range[1]=0),n[0]===e.range[0]&&n[1]===e.range[1]?!1:(t.modified(),!0)},t.removePoint=n=>{let r;for(r=0;r<e.nodes.length&&e.nodes[r].x!==n;r++);if(r>=e.nodes.length)return-1;let a=r,i=!1;return e.nodes.splice(r,1),(r===0||r===e.nodes.length)&&(i=t.updateRange()),i||t.modified(),a},t.removeAllPoints=()=>{e.nodes=[],t.sortAndUpdateRange()},t.addSegment=(n,r,a,i)=>{t.sortAndUpdateRange();for(let s=0;s<e.nodes.length;)e.nodes[s].x>=n&&e.nodes[s].x<=a?e.nodes.splice(s,1):s++;t.addPoint(n,r,.5,0),t.addPoint(a,i,.5,0)},t.getValue=n=>{let r=[];return t.getTable(n,n,1,r),r[0]},t.findX=n=>{let{nodes:r}=e;for(let a=0;a<r.length-1;a++){let{x:i,y:s,sharpness:o}=r[a],{x:c,y:f}=r[a+1];if(n===s)return i;if(n===f&&o<=.99)return c;if(n>=Math.min(s,f)&&n<=Math.max(s,f)){let u=f>=s,g=i,l=c,h=.5*(g+l);for(;g<h&&h<l;){let y=t.getValue(h);(u?y<n:y>n)?g=h:l=h,h=.5*(g+l)}return l}}if(e.clamping&&r.length>0){let a=1/0,i=-1/0;r.forEach(c=>{a=Math.min(a,c.y),i=Math.max(i,c.y)});let s=r[0],o=r[r.length-1];if(n>=i)return s.y===i?s.x:o.y===i?o.x:null;if(n<=a)return s.y===a?s.x:o.y===a?o.x:null}return null},t.adjustRange=n=>{if(n.length<2)return 0;let r=t.getRange();r[0]<n[0]?t.addPoint(n[0],t.getValue(n[0])):t.addPoint(n[0],t.getValue(r[0])),r[1]>n[1]?t.addPoint(n[1],t.getValue(n[1])):t.addPoint(n[1],t.getValue(r[1])),t.sortAndUpdateRange();for(let a=0;a<e.nodes.length;)e.nodes[a].x>=n[0]&&e.nodes[a].x<=n[1]?e.nodes.splice(a,1):++a;return t.sortAndUpdateRange(),1},t.estimateMinNumberOfSamples=(n,r)=>{let a=t.findMinimumXDistance();return Math.ceil((r-n)/a)},t.findMinimumXDistance=()=>{let n=e.nodes.length;if(n<2)return-1;let r=e.nodes[1].x-e.nodes[0].x;for(let a=0;a<n-1;a++){let i=e.nodes[a+1].x-e.nodes[a].x;i<r&&(r=i)}return r},t.getTable=(n,r,a,i,s=1)=>{let o,c=0,f=e.nodes.length,u=0;f!==0&&(u=e.nodes[f-1].y);let g=0,l=0,h=0,y=0,p=0,v=0,x=0;for(o=0;o<a;o++){let S=s*o;for(a>1?g=n+o/(a-1)*(r-n):g=.5*(n+r);c<f&&g>e.nodes[c].x;)c++,c<f&&(l=e.nodes[c-1].x,h=e.nodes[c].x,y=e.nodes[c-1].y,p=e.nodes[c].y,v=e.nodes[c-1].midpoint,x=e.nodes[c-1].sharpness,v<1e-5&&(v=1e-5),v>.99999&&(v=.99999));if(c>=f)i[S]=e.clamping?u:0;else if(c===0)i[S]=e.clamping?e.nodes[0].y:0;else{let T=(g-l)/(h-l);if(T<v?T=.5*T/v:T=.5+.5*(T-v)/(1-v),x>.99)if(T<.5){i[S]=y;continue}else{i[S]=p;continue}if(x<.01){i[S]=(1-T)*y+T*p;continue}T<.5?T=.5*(T*2)**(1+10*x):T>.5&&(T=1-.5*((1-T)*2)**(1+10*x));let d=T*T,C=d*T,w=2*C-3*d+1,D=-2*C+3*d,m=C-2*d+T,M=C-d,R=p-y,E=(1-x)*R;i[S]=w*y+D*p+m*E+M*E;let V=y<p?y:p,N=y>p?y:p;i[S]=i[S]<V?V:i[S],i[S]=i[S]>N?N:i[S]}}}}var ZR={range:[0,0],clamping:!0,allowDuplicateScalars:!1};function Qh(t,e,n={}){Object.assign(e,ZR,n),O.obj(t,e),e.nodes=[],O.setGet(t,e,["allowDuplicateScalars","clamping"]),O.setArray(t,e,["range"],2),O.getArray(t,e,["range"]),qR(t,e)}var QR=O.newInstance(Qh,"vtkPiecewiseFunction"),Fr={newInstance:QR,extend:Qh};var JR={RGB:0,HSV:1,LAB:2,DIVERGING:3},eM={LINEAR:0,LOG10:1},yc={ColorSpace:JR,Scale:eM};var{ColorSpace:yt,Scale:mc}=yc,{ScalarMappingTarget:es}=Hn,{vtkDebugMacro:tM,vtkErrorMacro:nn,vtkWarningMacro:nM}=O;function Jh(t,e){let n=t[0],r=t[1],a=t[2],i=Math.sqrt(n*n+r*r+a*a),s=i>.001?Math.acos(n/i):0,o=s>.001?Math.atan2(a,r):0;e[0]=i,e[1]=s,e[2]=o}function rM(t,e){let n=t[0],r=t[1],a=t[2];e[0]=n*Math.cos(r),e[1]=n*Math.sin(r)*Math.cos(a),e[2]=n*Math.sin(r)*Math.sin(a)}function e0(t,e){if(t[0]>=e-.1)return t[2];let n=t[1]*Math.sqrt(e*e-t[0]*t[0])/(t[0]*Math.sin(t[1]));return t[2]>-.3*Math.PI?t[2]+n:t[2]-n}function aM(t,e){let n=t-e;for(n<0&&(n=-n);n>=2*Math.PI;)n-=2*Math.PI;return n>Math.PI&&(n=2*Math.PI-n),n}function t0(t,e,n,r){let a=[],i=[];fn(e,a),fn(n,i);let s=[],o=[];Jh(a,s),Jh(i,o);let c=t;if(s[1]>.05&&o[1]>.05&&aM(s[2],o[2])>.33*Math.PI){let g=Math.max(s[0],o[0]);g=Math.max(88,g),t<.5?(o[0]=g,o[1]=0,o[2]=0,c*=2):(s[0]=g,s[1]=0,s[2]=0,c=2*c-1)}s[1]<.05&&o[1]>.05?s[2]=e0(o,s[0]):o[1]<.05&&s[1]>.05&&(o[2]=e0(s,o[0]));let f=[];f[0]=(1-c)*s[0]+c*o[0],f[1]=(1-c)*s[1]+c*o[1],f[2]=(1-c)*s[2]+c*o[2];let u=[];rM(f,u),qr(u,r)}function iM(t,e){e.classHierarchy.push("vtkColorTransferFunction"),t.getSize=()=>e.nodes.length,t.addRGBPoint=(n,r,a,i)=>t.addRGBPointLong(n,r,a,i,.5,0),t.addRGBPointLong=(n,r,a,i,s=.5,o=0)=>{if(s<0||s>1)return nn("Midpoint outside range [0.0, 1.0]"),-1;if(o<0||o>1)return nn("Sharpness outside range [0.0, 1.0]"),-1;e.allowDuplicateScalars||t.removePoint(n);let c={x:n,r,g:a,b:i,midpoint:s,sharpness:o};e.nodes.push(c),t.sortAndUpdateRange();let f=0;for(;f<e.nodes.length&&e.nodes[f].x!==n;f++);return f<e.nodes.length?f:-1},t.addHSVPoint=(n,r,a,i)=>t.addHSVPointLong(n,r,a,i,.5,0),t.addHSVPointLong=(n,r,a,i,s=.5,o=0)=>{let c=[];return Kt([r,a,i],c),t.addRGBPoint(n,c[0],c[1],c[2],s,o)},t.setNodes=n=>{if(e.nodes!==n){let r=JSON.stringify(e.nodes);e.nodes=n;let a=JSON.stringify(e.nodes);if(t.sortAndUpdateRange()||r!==a)return t.modified(),!0}return!1},t.sortAndUpdateRange=()=>{let n=JSON.stringify(e.nodes);e.nodes.sort((i,s)=>i.x-s.x);let r=JSON.stringify(e.nodes),a=t.updateRange();return!a&&n!==r?(t.modified(),!0):a},t.updateRange=()=>{let n=[2];n[0]=e.mappingRange[0],n[1]=e.mappingRange[1];let r=e.nodes.length;return r?(e.mappingRange[0]=e.nodes[0].x,e.mappingRange[1]=e.nodes[r-1].x):(e.mappingRange[0]=0,e.mappingRange[1]=0),n[0]===e.mappingRange[0]&&n[1]===e.mappingRange[1]?!1:(t.modified(),!0)},t.removePoint=n=>{let r=0;for(;r<e.nodes.length&&e.nodes[r].x!==n;r++);let a=r;if(r>=e.nodes.length)return-1;let i=!1;return e.nodes.splice(r,1),(r===0||r===e.nodes.length)&&(i=t.updateRange()),i||t.modified(),a},t.movePoint=(n,r)=>{if(n!==r){t.removePoint(r);for(let a=0;a<e.nodes.length;a++)if(e.nodes[a].x===n){e.nodes[a].x=r,t.sortAndUpdateRange();break}}},t.removeAllPoints=()=>{e.nodes=[],t.sortAndUpdateRange()},t.addRGBSegment=(n,r,a,i,s,o,c,f)=>{t.sortAndUpdateRange();for(let u=0;u<e.nodes.length;)e.nodes[u].x>=n&&e.nodes[u].x<=s?e.nodes.splice(u,1):u++;t.addRGBPointLong(n,r,a,i,.5,0),t.addRGBPointLong(s,o,c,f,.5,0),t.modified()},t.addHSVSegment=(n,r,a,i,s,o,c,f)=>{let u=[r,a,i],g=[o,c,f],l=[],h=[];Kt(u,l),Kt(g,h),t.addRGBSegment(n,l[0],l[1],l[2],s,h[0],h[1],h[2])},t.mapValue=n=>{let r=[];return t.getColor(n,r),[Math.floor(255*r[0]+.5),Math.floor(255*r[1]+.5),Math.floor(255*r[2]+.5),255]},t.getColor=(n,r)=>{if(e.indexedLookup){let a=t.getSize(),i=t.getAnnotatedValueIndexInternal(n);if(i<0||a===0){let s=t.getNanColorByReference();r[0]=s[0],r[1]=s[1],r[2]=s[2]}else{let s=[];t.getNodeValue(i%a,s),r[0]=s[1],r[1]=s[2],r[2]=s[3]}return}t.getTable(n,n,1,r)},t.getRedValue=n=>{let r=[];return t.getColor(n,r),r[0]},t.getGreenValue=n=>{let r=[];return t.getColor(n,r),r[1]},t.getBlueValue=n=>{let r=[];return t.getColor(n,r),r[2]},t.logScaleEnabled=()=>e.scale===mc.LOG10,t.usingLogScale=()=>t.logScaleEnabled()&&e.mappingRange[0]>0,t.getTable=(n,r,a,i)=>{let s=t.usingLogScale(),o=s?Math.log10(Number(n)):Number(n),c=s?Math.log10(Number(r)):Number(r);if(kn(o)||kn(c)){for(let D=0;D<a;D++)i[D*3+0]=e.nanColor[0],i[D*3+1]=e.nanColor[1],i[D*3+2]=e.nanColor[2];return}let f=0,u=e.nodes.length,g=0,l=0,h=0;u!==0&&(g=e.nodes[u-1].r,l=e.nodes[u-1].g,h=e.nodes[u-1].b);let y=0,p=0,v=0,x=[0,0,0],S=[0,0,0],T=0,d=0,C=[],w=e.mappingRange;s&&(w=[Math.log10(e.mappingRange[0]),Math.log10(e.mappingRange[1])]);for(let D=0;D<a;D++){let m=3*D;if(a>1?y=o+D/(a-1)*(c-o):y=.5*(o+c),e.discretize){let M=w;if(y>=M[0]&&y<=M[1]){let R=e.numberOfValues,E=M[1]-M[0];if(R<=1)y=M[0]+E/2;else{let V=Xr(R*((y-M[0])/E));y=M[0]+V/(R-1)*E}}}for(;f<u&&y>e.nodes[f].x;)f++,f<u&&(p=e.nodes[f-1].x,v=e.nodes[f].x,x[0]=e.nodes[f-1].r,S[0]=e.nodes[f].r,x[1]=e.nodes[f-1].g,S[1]=e.nodes[f].g,x[2]=e.nodes[f-1].b,S[2]=e.nodes[f].b,T=e.nodes[f-1].midpoint,d=e.nodes[f-1].sharpness,T<1e-5&&(T=1e-5),T>.99999&&(T=.99999));if(y>w[1])i[m]=0,i[m+1]=0,i[m+2]=0,e.clamping&&(t.getUseAboveRangeColor()?(i[m]=e.aboveRangeColor[0],i[m+1]=e.aboveRangeColor[1],i[m+2]=e.aboveRangeColor[2]):(i[m]=g,i[m+1]=l,i[m+2]=h));else if(y<w[0]||zs(y)&&y<0)i[m]=0,i[m+1]=0,i[m+2]=0,e.clamping&&(t.getUseBelowRangeColor()?(i[m]=e.belowRangeColor[0],i[m+1]=e.belowRangeColor[1],i[m+2]=e.belowRangeColor[2]):u>0&&(i[m]=e.nodes[0].r,i[m+1]=e.nodes[0].g,i[m+2]=e.nodes[0].b));else if(f===0&&(Math.abs(y-o)<1e-6||e.discretize))u>0?(i[m]=e.nodes[0].r,i[m+1]=e.nodes[0].g,i[m+2]=e.nodes[0].b):(i[m]=0,i[m+1]=0,i[m+2]=0);else{let M=0;if(M=(y-p)/(v-p),M<T?M=.5*M/T:M=.5+.5*(M-T)/(1-T),d>.99)if(M<.5){i[m]=x[0],i[m+1]=x[1],i[m+2]=x[2];continue}else{i[m]=S[0],i[m+1]=S[1],i[m+2]=S[2];continue}if(d<.01){if(e.colorSpace===yt.RGB)i[m]=(1-M)*x[0]+M*S[0],i[m+1]=(1-M)*x[1]+M*S[1],i[m+2]=(1-M)*x[2]+M*S[2];else if(e.colorSpace===yt.HSV){let G=[],U=[];gr(x,G),gr(S,U),e.hSVWrap&&(G[0]-U[0]>.5||U[0]-G[0]>.5)&&(G[0]>U[0]?G[0]-=1:U[0]-=1);let z=[];z[0]=(1-M)*G[0]+M*U[0],z[0]<0&&(z[0]+=1),z[1]=(1-M)*G[1]+M*U[1],z[2]=(1-M)*G[2]+M*U[2],Kt(z,C),i[m]=C[0],i[m+1]=C[1],i[m+2]=C[2]}else if(e.colorSpace===yt.LAB){let G=[],U=[];fn(x,G),fn(S,U);let z=[];z[0]=(1-M)*G[0]+M*U[0],z[1]=(1-M)*G[1]+M*U[1],z[2]=(1-M)*G[2]+M*U[2],qr(z,C),i[m]=C[0],i[m+1]=C[1],i[m+2]=C[2]}else e.colorSpace===yt.DIVERGING?(t0(M,x,S,C),i[m]=C[0],i[m+1]=C[1],i[m+2]=C[2]):nn("ColorSpace set to invalid value.",e.colorSpace);continue}M<.5?M=.5*(M*2)**(1+10*d):M>.5&&(M=1-.5*((1-M)*2)**(1+10*d));let R=M*M,E=R*M,V=2*E-3*R+1,N=-2*E+3*R,_=E-2*R+M,L=E-R,B,b;if(e.colorSpace===yt.RGB)for(let G=0;G<3;G++)B=S[G]-x[G],b=(1-d)*B,i[m+G]=V*x[G]+N*S[G]+_*b+L*b;else if(e.colorSpace===yt.HSV){let G=[],U=[];gr(x,G),gr(S,U),e.hSVWrap&&(G[0]-U[0]>.5||U[0]-G[0]>.5)&&(G[0]>U[0]?G[0]-=1:U[0]-=1);let z=[];for(let A=0;A<3;A++)B=U[A]-G[A],b=(1-d)*B,z[A]=V*G[A]+N*U[A]+_*b+L*b,A===0&&z[A]<0&&(z[A]+=1);Kt(z,C),i[m]=C[0],i[m+1]=C[1],i[m+2]=C[2]}else if(e.colorSpace===yt.LAB){let G=[],U=[];fn(x,G),fn(S,U);let z=[];for(let A=0;A<3;A++)B=U[A]-G[A],b=(1-d)*B,z[A]=V*G[A]+N*U[A]+_*b+L*b;qr(z,C),i[m]=C[0],i[m+1]=C[1],i[m+2]=C[2]}else e.colorSpace===yt.DIVERGING?(t0(M,x,S,C),i[m]=C[0],i[m+1]=C[1],i[m+2]=C[2]):nn("ColorSpace set to invalid value.");for(let G=0;G<3;G++)i[m+G]=i[m+G]<0?0:i[m+G],i[m+G]=i[m+G]>1?1:i[m+G]}}},t.getUint8Table=(n,r,a,i=!1)=>{if(t.getMTime()<=e.buildTime&&e.tableSize===a&&e.tableWithAlpha!==i)return e.table;if(e.nodes.length===0)return nn("Attempting to lookup a value with no points in the function"),e.table;let s=i?4:3;(e.tableSize!==a||e.tableWithAlpha!==i)&&(e.table=new Uint8Array(a*s),e.tableSize=a,e.tableWithAlpha=i);let o=[];t.getTable(n,r,a,o);for(let c=0;c<a;c++)e.table[c*s+0]=Math.floor(o[c*3+0]*255+.5),e.table[c*s+1]=Math.floor(o[c*3+1]*255+.5),e.table[c*s+2]=Math.floor(o[c*3+2]*255+.5),i&&(e.table[c*s+3]=255);return e.buildTime.modified(),e.table},t.buildFunctionFromArray=n=>{t.removeAllPoints();let r=n.getNumberOfComponents();for(let a=0;a<n.getNumberOfTuples();a++)switch(r){case 3:e.nodes.push({x:a,r:n.getComponent(a,0),g:n.getComponent(a,1),b:n.getComponent(a,2),midpoint:.5,sharpness:0});break;case 4:e.nodes.push({x:n.getComponent(a,0),r:n.getComponent(a,1),g:n.getComponent(a,2),b:n.getComponent(a,3),midpoint:.5,sharpness:0});break;case 5:e.nodes.push({x:a,r:n.getComponent(a,0),g:n.getComponent(a,1),b:n.getComponent(a,2),midpoint:n.getComponent(a,4),sharpness:n.getComponent(a,5)});break;case 6:e.nodes.push({x:n.getComponent(a,0),r:n.getComponent(a,1),g:n.getComponent(a,2),b:n.getComponent(a,3),midpoint:n.getComponent(a,4),sharpness:n.getComponent(a,5)});break;default:break}t.sortAndUpdateRange()},t.buildFunctionFromTable=(n,r,a,i)=>{let s=0;t.removeAllPoints(),a>1&&(s=(r-n)/(a-1));for(let o=0;o<a;o++){let c={x:n+s*o,r:i[o*3],g:i[o*3+1],b:i[o*3+2],sharpness:0,midpoint:.5};e.nodes.push(c)}t.sortAndUpdateRange()},t.getNodeValue=(n,r)=>n<0||n>=e.nodes.length?(nn("Index out of range!"),-1):(r[0]=e.nodes[n].x,r[1]=e.nodes[n].r,r[2]=e.nodes[n].g,r[3]=e.nodes[n].b,r[4]=e.nodes[n].midpoint,r[5]=e.nodes[n].sharpness,1),t.setNodeValue=(n,r)=>{if(n<0||n>=e.nodes.length)return nn("Index out of range!"),-1;let a=e.nodes[n].x;return e.nodes[n].x=r[0],e.nodes[n].r=r[1],e.nodes[n].g=r[2],e.nodes[n].b=r[3],e.nodes[n].midpoint=r[4],e.nodes[n].sharpness=r[5],a!==r[0]?t.sortAndUpdateRange():t.modified(),1},t.getNumberOfAvailableColors=()=>{if(e.indexedLookup&&t.getSize())return t.getSize();if(e.tableSize)return e.tableSize;let n=e.nodes?.length??0;return Math.max(4094,n)},t.getIndexedColor=(n,r)=>{let a=t.getSize();if(a>0&&n>=0){let s=[];t.getNodeValue(n%a,s);for(let o=0;o<3;++o)r[o]=s[o+1];r[3]=1;return}let i=t.getNanColorByReference();r[0]=i[0],r[1]=i[1],r[2]=i[2],r[3]=1},t.fillFromDataPointer=(n,r)=>{if(!(n<=0||!r)){t.removeAllPoints();for(let a=0;a<n;a++)t.addRGBPoint(r[a*4],r[a*4+1],r[a*4+2],r[a*4+3])}},t.setMappingRange=(n,r)=>{let a=[n,r],i=[n,r],s=t.getRange(),o=t.logScaleEnabled();if(s[1]===a[1]&&s[0]===a[0])return;if(a[1]===a[0]){nn("attempt to set zero width color range");return}o&&(a[0]<=0?console.warn("attempt to set log scale color range with non-positive minimum"):(i[0]=Math.log10(a[0]),i[1]=Math.log10(a[1])));let c=(i[1]-i[0])/(s[1]-s[0]),f=i[0]-s[0]*c;for(let u=0;u<e.nodes.length;++u)e.nodes[u].x=e.nodes[u].x*c+f;e.mappingRange[0]=a[0],e.mappingRange[1]=a[1],t.modified()},t.adjustRange=n=>{let r=t.getRange(),a=[];r[0]<n[0]?(t.getColor(n[0],a),t.addRGBPoint(n[0],a[0],a[1],a[2])):(t.getColor(r[0],a),t.addRGBPoint(n[0],a[0],a[1],a[2])),r[1]>n[1]?(t.getColor(n[1],a),t.addRGBPoint(n[1],a[0],a[1],a[2])):(t.getColor(r[1],a),t.addRGBPoint(n[1],a[0],a[1],a[2])),t.sortAndUpdateRange();for(let i=0;i<e.nodes.length;)e.nodes[i].x>=n[0]&&e.nodes[i].x<=n[1]?e.nodes.splice(i,1):++i;return 1},t.estimateMinNumberOfSamples=(n,r)=>{let a=t.findMinimumXDistance();return Math.ceil((r-n)/a)},t.findMinimumXDistance=()=>{if(e.nodes.length<2)return-1;let n=Number.MAX_VALUE;for(let r=0;r<e.nodes.length-1;r++){let a=e.nodes[r+1].x-e.nodes[r].x;a<n&&(n=a)}return n},t.mapScalarsThroughTable=(n,r,a,i)=>{if(t.getSize()===0){tM("Transfer Function Has No Points!");return}e.indexedLookup?t.mapDataIndexed(n,r,a,i):t.mapData(n,r,a,i)},t.mapData=(n,r,a,i)=>{if(t.getSize()===0){nM("Transfer Function Has No Points!");return}let s=Math.floor(t.getAlpha()*255+.5),o=n.getNumberOfTuples(),c=n.getNumberOfComponents(),f=r.getData(),u=n.getData(),g=[];if(a===es.RGBA)for(let l=0;l<o;l++){let h=u[l*c+i];t.getColor(h,g),f[l*4]=Math.floor(g[0]*255+.5),f[l*4+1]=Math.floor(g[1]*255+.5),f[l*4+2]=Math.floor(g[2]*255+.5),f[l*4+3]=s}if(a===es.RGB)for(let l=0;l<o;l++){let h=u[l*c+i];t.getColor(h,g),f[l*3]=Math.floor(g[0]*255+.5),f[l*3+1]=Math.floor(g[1]*255+.5),f[l*3+2]=Math.floor(g[2]*255+.5)}if(a===es.LUMINANCE)for(let l=0;l<o;l++){let h=u[l*c+i];t.getColor(h,g),f[l]=Math.floor(g[0]*76.5+g[1]*150.45+g[2]*28.05+.5)}if(a===es.LUMINANCE_ALPHA)for(let l=0;l<o;l++){let h=u[l*c+i];t.getColor(h,g),f[l*2]=Math.floor(g[0]*76.5+g[1]*150.45+g[2]*28.05+.5),f[l*2+1]=s}},t.applyColorMap=n=>{let r=JSON.stringify(e.colorSpace);n.ColorSpace&&(e.colorSpace=yt[n.ColorSpace.toUpperCase()],e.colorSpace===void 0&&(nn(`ColorSpace ${n.ColorSpace} not supported, using RGB instead`),e.colorSpace=yt.RGB));let a=r!==JSON.stringify(e.colorSpace),i=a||JSON.stringify(e.nanColor);if(n.NanColor)for(e.nanColor=[].concat(n.NanColor);e.nanColor.length<4;)e.nanColor.push(1);a=a||i!==JSON.stringify(e.nanColor);let s=a||JSON.stringify(e.nodes);if(n.RGBPoints){let f=n.RGBPoints.length;e.nodes=[];let u=.5,g=0;for(let l=0;l<f;l+=4)e.nodes.push({x:n.RGBPoints[l],r:n.RGBPoints[l+1],g:n.RGBPoints[l+2],b:n.RGBPoints[l+3],midpoint:u,sharpness:g})}let o=t.sortAndUpdateRange(),c=!o&&(a||s!==JSON.stringify(e.nodes));return c&&t.modified(),o||c},t.getDataPointer=()=>e.nodes}var sM={clamping:!0,colorSpace:yt.RGB,hSVWrap:!0,scale:mc.LINEAR,nanColor:null,belowRangeColor:null,aboveRangeColor:null,useAboveRangeColor:!1,useBelowRangeColor:!1,allowDuplicateScalars:!1,table:null,tableSize:0,buildTime:null,nodes:null,discretize:!1,numberOfValues:256};function n0(t,e,n={}){Object.assign(e,sM,n),Hn.extend(t,e,n),e.table=[],e.nodes=[],e.nanColor=[.5,0,0,1],e.belowRangeColor=[0,0,0,1],e.aboveRangeColor=[1,1,1,1],e.buildTime={},O.obj(e.buildTime),O.get(t,e,["buildTime","mappingRange"]),O.setGet(t,e,["useAboveRangeColor","useBelowRangeColor","discretize","numberOfValues",{type:"enum",name:"colorSpace",enum:yt},{type:"enum",name:"scale",enum:mc}]),O.setArray(t,e,["nanColor","belowRangeColor","aboveRangeColor"],4),O.getArray(t,e,["nanColor","belowRangeColor","aboveRangeColor"]),iM(t,e)}var oM=O.newInstance(n0,"vtkColorTransferFunction"),Sc={newInstance:oM,extend:n0,...yc};var{InterpolationType:xa,OpacityMode:cM,FilterMode:ya,ColorMixPreset:fM}=Tc,{vtkErrorMacro:Cc}=O,ts=4;function uM(t,e){e.classHierarchy.push("vtkVolumeProperty");let n={...t};t.getMTime=()=>{let r=e.mtime,a;for(let i=0;i<ts;i++)e.componentData[i].colorChannels===1?e.componentData[i].grayTransferFunction&&(a=e.componentData[i].grayTransferFunction.getMTime(),r=r>a?r:a):e.componentData[i].colorChannels===3&&e.componentData[i].rGBTransferFunction&&(a=e.componentData[i].rGBTransferFunction.getMTime(),r=r>a?r:a),e.componentData[i].scalarOpacity&&(a=e.componentData[i].scalarOpacity.getMTime(),r=r>a?r:a),e.componentData[i].gradientOpacity&&(e.componentData[i].disableGradientOpacity||(a=e.componentData[i].gradientOpacity.getMTime(),r=r>a?r:a));return r},t.getColorChannels=r=>r<0||r>3?(Cc("Bad index - must be between 0 and 3"),0):e.componentData[r].colorChannels,t.getUseIndependentComponents=r=>e.independentComponents&&r>=2||!!e.colorMixPreset,t.setGrayTransferFunction=(r=0,a=null)=>{let i=!1;return e.componentData[r].grayTransferFunction!==a&&(e.componentData[r].grayTransferFunction=a,i=!0),e.componentData[r].colorChannels!==1&&(e.componentData[r].colorChannels=1,i=!0),i&&t.modified(),i},t.getGrayTransferFunction=(r=0)=>(e.componentData[r].grayTransferFunction===null&&(e.componentData[r].grayTransferFunction=Fr.newInstance(),e.componentData[r].grayTransferFunction.addPoint(0,0),e.componentData[r].grayTransferFunction.addPoint(1024,1),e.componentData[r].colorChannels!==1&&(e.componentData[r].colorChannels=1),t.modified()),e.componentData[r].grayTransferFunction),t.setRGBTransferFunction=(r=0,a=null)=>{let i=!1;return e.componentData[r].rGBTransferFunction!==a&&(e.componentData[r].rGBTransferFunction=a,i=!0),e.componentData[r].colorChannels!==3&&(e.componentData[r].colorChannels=3,i=!0),i&&t.modified(),i},t.getRGBTransferFunction=(r=0)=>(e.componentData[r].rGBTransferFunction===null&&(e.componentData[r].rGBTransferFunction=Sc.newInstance(),e.componentData[r].rGBTransferFunction.addRGBPoint(0,0,0,0),e.componentData[r].rGBTransferFunction.addRGBPoint(1024,1,1,1),e.componentData[r].colorChannels!==3&&(e.componentData[r].colorChannels=3),t.modified()),e.componentData[r].rGBTransferFunction),t.setScalarOpacity=(r=0,a=null)=>e.componentData[r].scalarOpacity!==a?(e.componentData[r].scalarOpacity=a,t.modified(),!0):!1,t.getScalarOpacity=(r=0)=>(e.componentData[r].scalarOpacity===null&&(e.componentData[r].scalarOpacity=Fr.newInstance(),e.componentData[r].scalarOpacity.addPoint(0,1),e.componentData[r].scalarOpacity.addPoint(1024,1),t.modified()),e.componentData[r].scalarOpacity),t.setComponentWeight=(r=0,a=1)=>{if(r<0||r>=ts)return Cc("Invalid index"),!1;let i=Math.min(1,Math.max(0,a));return e.componentData[r].componentWeight!==i?(e.componentData[r].componentWeight=i,t.modified(),!0):!1},t.getComponentWeight=(r=0)=>r<0||r>=ts?(Cc("Invalid index"),0):e.componentData[r].componentWeight,t.setInterpolationTypeToNearest=()=>t.setInterpolationType(xa.NEAREST),t.setInterpolationTypeToLinear=()=>t.setInterpolationType(xa.LINEAR),t.setInterpolationTypeToFastLinear=()=>t.setInterpolationType(xa.FAST_LINEAR),t.getInterpolationTypeAsString=()=>O.enumToString(xa,e.interpolationType),["useGradientOpacity","scalarOpacityUnitDistance","gradientOpacityMinimumValue","gradientOpacityMinimumOpacity","gradientOpacityMaximumValue","gradientOpacityMaximumOpacity","opacityMode","forceNearestInterpolation"].forEach(r=>{let a=O.capitalize(r);t[`set${a}`]=(i,s)=>e.componentData[i][`${r}`]!==s?(e.componentData[i][`${r}`]=s,t.modified(),!0):!1}),["useGradientOpacity","scalarOpacityUnitDistance","gradientOpacityMinimumValue","gradientOpacityMinimumOpacity","gradientOpacityMaximumValue","gradientOpacityMaximumOpacity","opacityMode","forceNearestInterpolation"].forEach(r=>{let a=O.capitalize(r);t[`get${a}`]=i=>e.componentData[i][`${r}`]}),t.setAverageIPScalarRange=(r,a)=>{console.warn("setAverageIPScalarRange is deprecated use setIpScalarRange"),t.setIpScalarRange(r,a)},t.getFilterModeAsString=()=>O.enumToString(ya,e.filterMode),t.setFilterModeToOff=()=>{t.setFilterMode(ya.OFF)},t.setFilterModeToNormalized=()=>{t.setFilterMode(ya.NORMALIZED)},t.setFilterModeToRaw=()=>{t.setFilterMode(ya.RAW)},t.setGlobalIlluminationReach=r=>n.setGlobalIlluminationReach(It(r,0,1)),t.setVolumetricScatteringBlending=r=>n.setVolumetricScatteringBlending(It(r,0,1)),t.setAnisotropy=r=>n.setAnisotropy(It(r,-.99,.99)),t.setLAOKernelSize=r=>n.setLAOKernelSize(Xr(It(r,1,32))),t.setLAOKernelRadius=r=>n.setLAOKernelRadius(r>=1?r:1)}var lM=t=>({colorMixPreset:fM.DEFAULT,independentComponents:!0,interpolationType:xa.FAST_LINEAR,shade:!1,ambient:.1,diffuse:.7,specular:.2,specularPower:10,useLabelOutline:!1,labelOutlineThickness:[1],labelOutlineOpacity:1,ipScalarRange:[-1e6,1e6],filterMode:ya.OFF,preferSizeOverAccuracy:!1,computeNormalFromOpacity:!1,volumetricScatteringBlending:0,globalIlluminationReach:0,anisotropy:0,localAmbientOcclusion:!1,LAOKernelSize:15,LAOKernelRadius:7,updatedExtents:[],...t});function r0(t,e,n={}){if(Object.assign(e,lM(n)),O.obj(t,e),!e.componentData){e.componentData=[];for(let r=0;r<ts;++r)e.componentData.push({colorChannels:1,grayTransferFunction:null,rGBTransferFunction:null,scalarOpacity:null,scalarOpacityUnitDistance:1,opacityMode:cM.FRACTIONAL,gradientOpacityMinimumValue:0,gradientOpacityMinimumOpacity:0,gradientOpacityMaximumValue:1,gradientOpacityMaximumOpacity:1,useGradientOpacity:!1,componentWeight:1,forceNearestInterpolation:!1})}O.setGet(t,e,["colorMixPreset","independentComponents","interpolationType","shade","ambient","diffuse","specular","specularPower","useLabelOutline","labelOutlineOpacity","filterMode","preferSizeOverAccuracy","computeNormalFromOpacity","volumetricScatteringBlending","globalIlluminationReach","anisotropy","localAmbientOcclusion","LAOKernelSize","LAOKernelRadius","updatedExtents"]),O.setGetArray(t,e,["ipScalarRange"],2),O.setGetArray(t,e,["labelOutlineThickness"]),uM(t,e)}var gM=O.newInstance(r0,"vtkVolumeProperty"),a0={newInstance:gM,extend:r0,...Tc};function pM(t,e){e.classHierarchy.push("vtkVolume"),t.getVolumes=()=>[t],t.makeProperty=a0.newInstance,t.getRedrawMTime=()=>{let n=e.mtime;if(e.mapper!==null){let r=e.mapper.getMTime();n=r>n?r:n,e.mapper.getInput()!==null&&(e.mapper.getInputAlgorithm().update(),r=e.mapper.getInput().getMTime(),n=r>n?r:n)}return n}}var hM={mapper:null};function i0(t,e,n={}){Object.assign(e,hM,n),pi.extend(t,e,n),e.boundsMTime={},O.obj(e.boundsMTime),O.setGet(t,e,["mapper"]),pM(t,e)}var vM=O.newInstance(i0,"vtkVolume"),dM={newInstance:vM,extend:i0};var{BlendMode:mn}=jh;function TM(t,e,n,r,a){let i=null;return a?(i=a,i.removeAllPoints()):i=Fr.newInstance(),i.addPointLong(-1024,0,1,1),i.addPoint(t,e),i.addPoint(n,r),i}var xM=["getAnisotropy","getComputeNormalFromOpacity","getFilterMode","getFilterModeAsString","getGlobalIlluminationReach","getIpScalarRange","getIpScalarRangeByReference","getLAOKernelRadius","getLAOKernelSize","getLocalAmbientOcclusion","getPreferSizeOverAccuracy","getVolumetricScatteringBlending","setAnisotropy","setAverageIPScalarRange","setComputeNormalFromOpacity","setFilterMode","setFilterModeToNormalized","setFilterModeToOff","setFilterModeToRaw","setGlobalIlluminationReach","setIpScalarRange","setIpScalarRangeFrom","setLAOKernelRadius","setLAOKernelSize","setLocalAmbientOcclusion","setPreferSizeOverAccuracy","setVolumetricScatteringBlending"],yM={createRadonTransferFunction:TM};function mM(t,e){e.classHierarchy.push("vtkVolumeMapper");let n={...t};t.computeBounds=()=>{let r=t.getInputData();if(!r){$.reset(e.bounds);return}e.static||t.update(),$.setBounds(e.bounds,r.getBounds())},t.setBlendModeToComposite=()=>{t.setBlendMode(mn.COMPOSITE_BLEND)},t.setBlendModeToMaximumIntensity=()=>{t.setBlendMode(mn.MAXIMUM_INTENSITY_BLEND)},t.setBlendModeToMinimumIntensity=()=>{t.setBlendMode(mn.MINIMUM_INTENSITY_BLEND)},t.setBlendModeToAverageIntensity=()=>{t.setBlendMode(mn.AVERAGE_INTENSITY_BLEND)},t.setBlendModeToAdditiveIntensity=()=>{t.setBlendMode(mn.ADDITIVE_INTENSITY_BLEND)},t.setBlendModeToRadonTransform=()=>{t.setBlendMode(mn.RADON_TRANSFORM_BLEND)},t.getBlendModeAsString=()=>O.enumToString(mn,e.blendMode),t.setVolumeShadowSamplingDistFactor=r=>n.setVolumeShadowSamplingDistFactor(r>=1?r:1),xM.forEach(r=>{let a=()=>{throw new Error(`The method "volumeMapper.${r}()" doesn't exist anymore. It is a rendering property that has been moved to the volume property. Replace your code with:
volumeActor.getProperty().${r}()
`)};t[r]=a})}var SM=t=>({bounds:[...$.INIT_BOUNDS],sampleDistance:1,imageSampleDistance:1,maximumSamplesPerRay:1e3,autoAdjustSampleDistances:!0,initialInteractionScale:1,interactionSampleDistanceFactor:1,blendMode:mn.COMPOSITE_BLEND,volumeShadowSamplingDistFactor:5,colorTextureWidth:1024,opacityTextureWidth:1024,labelOutlineTextureWidth:1024,...t});function s0(t,e,n={}){Object.assign(e,SM(n)),di.extend(t,e,n),O.setGet(t,e,["sampleDistance","imageSampleDistance","maximumSamplesPerRay","autoAdjustSampleDistances","initialInteractionScale","interactionSampleDistanceFactor","blendMode","volumeShadowSamplingDistFactor","colorTextureWidth","opacityTextureWidth","labelOutlineTextureWidth"]),O.event(t,e,"lightingActivated"),mM(t,e)}var CM=O.newInstance(s0,"vtkVolumeMapper"),wM={newInstance:CM,extend:s0,...yM};function OM(t){return t}function wc(t){if(t===null||t==="null")return null;if(t==="true")return!0;if(t==="false")return!1;if(!(t===void 0||t==="undefined"))return t[0]==="["&&t[t.length-1]==="]"?t.substring(1,t.length-1).split(",").map(e=>wc(e.trim())):t===""||Number.isNaN(Number(t))?t:Number(t)}function RM(t=!0,e=window.location.search){let n={},r=t?wc:OM;return new URLSearchParams(e).forEach((a,i)=>{i&&(n[i]=a?r(a):!0)}),n}var o0={toNativeType:wc,extractURLParameters:RM};var ns={Unknown:0,LeftController:1,RightController:2},Nr={Unknown:0,Trigger:1,TrackPad:2,Grip:3,Thumbstick:4,A:5,B:6,ApplicationMenu:7},MM={Unknown:0,TouchpadX:1,TouchpadY:2,ThumbstickX:3,ThumbstickY:4},EM={LeftButton:1,MiddleButton:2,RightButton:3},Oc={Device:ns,Input:Nr,Axis:MM,MouseButton:EM};var{Device:rs,Input:tr}=Oc,{vtkWarningMacro:ma,vtkErrorMacro:as,normalizeWheel:DM,vtkOnceErrorMacro:VM}=O,LM=1,Sn={ctrlKey:!1,altKey:!1,shiftKey:!1},Br={NONE:0,LEFT:1,RIGHT:2,MIDDLE:4},Rc={"xr-standard":[tr.Trigger,tr.Grip,tr.TrackPad,tr.Thumbstick,tr.A,tr.B]},Ec=["StartAnimation","Animation","EndAnimation","PointerEnter","PointerLeave","MouseEnter","MouseLeave","StartMouseMove","MouseMove","EndMouseMove","LeftButtonPress","LeftButtonRelease","MiddleButtonPress","MiddleButtonRelease","RightButtonPress","RightButtonRelease","KeyPress","KeyDown","KeyUp","StartMouseWheel","MouseWheel","EndMouseWheel","StartPinch","Pinch","EndPinch","StartPan","Pan","EndPan","Tap","LongTap","StartRotate","Rotate","EndRotate","Button3D","Move3D","StartPointerLock","EndPointerLock","StartInteraction","Interaction","EndInteraction","AnimationFrameRateUpdate"];function Gr(t){t.cancelable&&t.preventDefault()}function is(t){let e=Object.create(null);return t.forEach(({pointerId:n,position:r})=>{e[n]=r}),e}function Mc(t,e){return(t.x-e.x)*(t.x-e.x)+(t.y-e.y)*(t.y-e.y)}function _M(t,e){e.classHierarchy.push("vtkRenderWindowInteractor");let n={...t},r=new Set,a=new Map,i=1,s=0,o=0,c=0,f=0,u={timer:null,pointerId:null};function g(){u.timer!=null&&clearTimeout(u.timer),u.timer=null}function l(m){g(),u.pointerId=m,u.timer=setTimeout(()=>{let M={...x(Sn),position:e.startingEventPositions[m],deviceType:"touch"};t.longTapEvent(M),g()},e.longTapDuration)}function h(m){if(u.timer!=null){let M={...x(Sn),position:e.startingEventPositions[u.pointerId],deviceType:T(m)};t.tapEvent(M),g()}}t.start=()=>{!e.initialized&&(t.initialize(),!e.initialized)||t.startEventLoop()},t.setRenderWindow=m=>{as("you want to call setView(view) instead of setRenderWindow on a vtk.js interactor")},t.setInteractorStyle=m=>{e.interactorStyle!==m&&(e.interactorStyle!=null&&e.interactorStyle.setInteractor(null),e.interactorStyle=m,e.interactorStyle!=null&&e.interactorStyle.getInteractor()!==t&&e.interactorStyle.setInteractor(t))},t.initialize=()=>{e.initialized=!0,t.enable(),t.render()},t.enable=()=>t.setEnabled(!0),t.disable=()=>t.setEnabled(!1),t.startEventLoop=()=>ma("empty event loop");function y(m,M){e._forcedRenderer||(e.currentRenderer=t.findPokedRenderer(m,M))}t.getCurrentRenderer=()=>(e.currentRenderer||y(0,0),e.currentRenderer);function p(m){let M=e._view.getCanvas(),R=M.getBoundingClientRect(),E=M.width/R.width,V=M.height/R.height,N={x:E*(m.clientX-R.left),y:V*(R.height-m.clientY+R.top),z:0,movementX:E*m.movementX,movementY:V*m.movementY};return(a.size<=1||!e.currentRenderer)&&y(N.x,N.y),N}let v=e._getScreenEventPositionFor||p;function x(m){return{controlKey:m.ctrlKey,altKey:m.altKey,shiftKey:m.shiftKey}}function S(m){let M=x(m);return{key:m.key,keyCode:m.charCode,...M}}function T(m){return m.pointerType||""}let d=()=>{if(e.container===null)return;let{container:m}=e;m.addEventListener("contextmenu",Gr),m.addEventListener("wheel",t.handleWheel),m.addEventListener("DOMMouseScroll",t.handleWheel),m.addEventListener("pointerenter",t.handlePointerEnter),m.addEventListener("pointerleave",t.handlePointerLeave),m.addEventListener("pointermove",t.handlePointerMove,{passive:!1}),m.addEventListener("pointerdown",t.handlePointerDown,{passive:!1}),m.addEventListener("pointerup",t.handlePointerUp),m.addEventListener("pointercancel",t.handlePointerCancel),m.addEventListener("keypress",t.handleKeyPress),m.addEventListener("keydown",t.handleKeyDown),document.addEventListener("keyup",t.handleKeyUp),document.addEventListener("pointerlockchange",t.handlePointerLockChange),m.tabIndex=0,m.style.touchAction="none",m.style.userSelect="none",m.style.webkitTapHighlightColor="rgba(0,0,0,0)"};t.bindEvents=m=>{m!==null&&n.setContainer(m)&&d()};let C=()=>{clearTimeout(e.moveTimeoutID),clearTimeout(o),e.moveTimeoutID=0,o=0,s=0,i=1;let{container:m}=e;m&&(m.removeEventListener("contextmenu",Gr),m.removeEventListener("wheel",t.handleWheel),m.removeEventListener("DOMMouseScroll",t.handleWheel),m.removeEventListener("pointerenter",t.handlePointerEnter),m.removeEventListener("pointerleave",t.handlePointerLeave),m.removeEventListener("pointermove",t.handlePointerMove,{passive:!1}),m.removeEventListener("pointerdown",t.handlePointerDown,{passive:!1}),m.removeEventListener("pointerup",t.handlePointerUp),m.removeEventListener("pointercancel",t.handlePointerCancel),m.removeEventListener("keypress",t.handleKeyPress),m.removeEventListener("keydown",t.handleKeyDown)),document.removeEventListener("keyup",t.handleKeyUp),document.removeEventListener("pointerlockchange",t.handlePointerLockChange),a.clear(),c=0,g()};t.unbindEvents=()=>{C(),n.setContainer(null)},t.handleKeyPress=m=>{let M=S(m);t.keyPressEvent(M)},t.handleKeyDown=m=>{let M=S(m);t.keyDownEvent(M)},t.handleKeyUp=m=>{let M=S(m);t.keyUpEvent(M)},t.handlePointerEnter=m=>{let M={...x(m),position:v(m),deviceType:T(m)};t.pointerEnterEvent(M),M.deviceType==="mouse"&&t.mouseEnterEvent(M)},t.handlePointerLeave=m=>{let M={...x(m),position:v(m),deviceType:T(m)};t.pointerLeaveEvent(M),M.deviceType==="mouse"&&t.mouseLeaveEvent(M)},t.handlePointerDown=m=>{if(!(m.button>2||t.isPointerLocked()))switch(e.preventDefaultOnPointerDown&&Gr(m),m.target.hasPointerCapture(m.pointerId)&&m.target.releasePointerCapture(m.pointerId),e.container.setPointerCapture(m.pointerId),a.has(m.pointerId)&&ma("[RenderWindowInteractor] duplicate pointerId detected"),a.set(m.pointerId,{pointerId:m.pointerId,position:v(m)}),m.pointerType){case"pen":case"touch":t.handleTouchStart(m);break;default:t.handleMouseDown(m),c=m.buttons;break}};function w(m,M,R,E=0){let{LEFT:V,MIDDLE:N,RIGHT:_}=Br;(M&~R&V&~E)!==0&&t.leftButtonReleaseEvent(m),(M&~R&N&~E)!==0&&t.middleButtonReleaseEvent(m),(M&~R&_&~E)!==0&&t.rightButtonReleaseEvent(m),(~M&R&V&~E)!==0&&t.leftButtonPressEvent(m),(~M&R&N&~E)!==0&&t.middleButtonPressEvent(m),(~M&R&_&~E)!==0&&t.rightButtonPressEvent(m)}t.handlePointerUp=m=>{let M=[Br.LEFT,Br.MIDDLE,Br.RIGHT][m.button]??Br.NONE;if(a.has(m.pointerId)||f&M)switch(e.preventDefaultOnPointerUp&&Gr(m),a.delete(m.pointerId),e.container.releasePointerCapture(m.pointerId),m.pointerType){case"pen":case"touch":t.handleTouchEnd(m);break;default:w({...x(m),position:v(m),deviceType:T(m)},c,m.buttons,M),t.handleMouseUp(m),c=m.buttons,f&=~M;break}},t.handlePointerCancel=m=>{if(a.has(m.pointerId))switch(a.delete(m.pointerId),m.pointerType){case"pen":case"touch":g(),t.handleTouchEnd(m);break;default:w({...x(m),position:v(m),deviceType:T(m)},c,0),c=0;break}},t.handlePointerMove=m=>{if(a.has(m.pointerId)){let M=a.get(m.pointerId);M.position=v(m)}switch(m.pointerType){case"pen":case"touch":t.handleTouchMove(m);break;default:{let M=m.buttons;if(M!==c){let R={...x(m),position:v(m),deviceType:T(m)};c===Br.NONE&&(f=M),w(R,c,M,f),c=M,f&=M}t.handleMouseMove(m);break}}},t.handleMouseDown=m=>{let M={...x(m),position:v(m),deviceType:T(m)};switch(m.button){case 0:t.leftButtonPressEvent(M);break;case 1:t.middleButtonPressEvent(M);break;case 2:t.rightButtonPressEvent(M);break;default:as(`Unknown mouse button pressed: ${m.button}`);break}},t.requestPointerLock=()=>{if(e.container)return e.container.requestPointerLock()},t.exitPointerLock=()=>document.exitPointerLock?.(),t.isPointerLocked=()=>!!e.container&&document.pointerLockElement===e.container,t.handlePointerLockChange=()=>{t.isPointerLocked()?t.startPointerLockEvent():t.endPointerLockEvent()};function D(){e._view&&e.enabled&&e.enableRender&&(e.inRender=!0,e._view.traverseAllPasses(),e.inRender=!1),t.invokeRenderEvent()}t.requestAnimation=m=>{if(m===void 0){as("undefined requester, can not start animating");return}if(r.has(m)){ma("requester is already registered for animating");return}r.add(m),!e.animationRequest&&r.size===1&&!e.xrAnimation&&(e._animationStartTime=Date.now(),e._animationFrameCount=0,e.animationRequest=requestAnimationFrame(t.handleAnimation),t.startAnimationEvent())},t.extendAnimation=m=>{let M=Date.now()+m;e._animationExtendedEnd=Math.max(e._animationExtendedEnd,M),!e.animationRequest&&r.size===0&&!e.xrAnimation&&(e._animationStartTime=Date.now(),e._animationFrameCount=0,e.animationRequest=requestAnimationFrame(t.handleAnimation),t.startAnimationEvent())},t.isAnimating=()=>e.xrAnimation||e.animationRequest!==null,t.cancelAnimation=(m,M=!1)=>{if(!r.has(m)){M||ma(`${m&&m.getClassName?m.getClassName():m} did not request an animation`);return}r.delete(m),e.animationRequest&&r.size===0&&Date.now()>e._animationExtendedEnd&&(cancelAnimationFrame(e.animationRequest),e.animationRequest=null,t.endAnimationEvent(),t.render())},t.switchToXRAnimation=()=>{e.animationRequest&&(cancelAnimationFrame(e.animationRequest),e.animationRequest=null),e.xrAnimation=!0},t.returnFromXRAnimation=()=>{e.xrAnimation=!1,r.size!==0&&(e.recentAnimationFrameRate=10,e.animationRequest=requestAnimationFrame(t.handleAnimation))},t.updateXRGamepads=(m,M,R)=>{m.inputSources.forEach(E=>{let V=E.gripSpace==null?null:M.getPose(E.gripSpace,R),N=E.gripSpace==null?null:M.getPose(E.targetRaySpace,R),_=E.gamepad,L=E.handedness;if(_){_.index in e.lastGamepadValues||(e.lastGamepadValues[_.index]={left:{buttons:{}},right:{buttons:{}},none:{buttons:{}}});for(let B=0;B<_.buttons.length;++B)B in e.lastGamepadValues[_.index][L].buttons||(e.lastGamepadValues[_.index][L].buttons[B]=!1),e.lastGamepadValues[_.index][L].buttons[B]!==_.buttons[B].pressed&&V!=null&&(t.button3DEvent({gamepad:_,position:V.transform.position,orientation:V.transform.orientation,targetPosition:N.transform.position,targetOrientation:N.transform.orientation,pressed:_.buttons[B].pressed,device:E.handedness==="left"?rs.LeftController:rs.RightController,input:Rc[_.mapping]&&Rc[_.mapping][B]?Rc[_.mapping][B]:tr.Trigger}),e.lastGamepadValues[_.index][L].buttons[B]=_.buttons[B].pressed),e.lastGamepadValues[_.index][L].buttons[B]&&V!=null&&t.move3DEvent({gamepad:_,position:V.transform.position,orientation:V.transform.orientation,targetPosition:N.transform.position,targetOrientation:N.transform.orientation,device:E.handedness==="left"?rs.LeftController:rs.RightController})}})},t.handleMouseMove=m=>{let M={...x(m),position:v(m),deviceType:T(m)};e.moveTimeoutID===0?t.startMouseMoveEvent(M):clearTimeout(e.moveTimeoutID),t.mouseMoveEvent(M),e.moveTimeoutID=setTimeout(()=>{t.endMouseMoveEvent(),e.moveTimeoutID=0},200)},t.handleAnimation=()=>{let m=Date.now();e._animationFrameCount++,m-e._animationStartTime>1e3&&e._animationFrameCount>1&&(e.recentAnimationFrameRate=1e3*(e._animationFrameCount-1)/(m-e._animationStartTime),e.lastFrameTime=1/e.recentAnimationFrameRate,t.animationFrameRateUpdateEvent(),e._animationStartTime=m,e._animationFrameCount=1),t.animationEvent(),D(),r.size>0||Date.now()<e._animationExtendedEnd?e.animationRequest=requestAnimationFrame(t.handleAnimation):(cancelAnimationFrame(e.animationRequest),e.animationRequest=null,t.endAnimationEvent(),t.render())},t.handleWheel=m=>{Gr(m);let M={...DM(m),...x(m),position:v(m),deviceType:T(m)};o===0&&(Math.abs(M.spinY)>=.3?i=Math.abs(M.spinY):i=1),M.spinY/=i,o===0?t.startMouseWheelEvent(M):clearTimeout(o);let R=!0;e.mouseWheelSpinYBuffering&&(R=!1,s!==0&&Math.sign(M.spinY)!==Math.sign(s)&&(s=0),s+=M.spinY,Math.abs(s)>=LM&&(M.spinY=Math.trunc(s),s-=M.spinY,R=!0)),R&&t.mouseWheelEvent(M),e.wheelEndDebounceDelay===0?(t.extendAnimation(600),t.endMouseWheelEvent(),o=0,s=0):o=setTimeout(()=>{t.extendAnimation(600),t.endMouseWheelEvent(),o=0,s=0},e.wheelEndDebounceDelay)},t.handleMouseUp=m=>{let M={...x(m),position:v(m),deviceType:T(m)};switch(m.button){case 0:t.leftButtonReleaseEvent(M);break;case 1:t.middleButtonReleaseEvent(M);break;case 2:t.rightButtonReleaseEvent(M);break;default:as(`Unknown mouse button released: ${m.button}`);break}},t.handleTouchStart=m=>{let M=[...a.values()];if(e.recognizeGestures){let R=is(a);if(e.startingEventPositions||(e.startingEventPositions={}),Object.keys(R).forEach(E=>{e.startingEventPositions[E]=R[E]}),M.length>1){if(g(),M.length===2){let E={...x(Sn),position:M[0].position,deviceType:T(m)};t.leftButtonReleaseEvent(E)}t.recognizeGesture("TouchStart",R)}else M.length===1&&(Gr(m),l(m.pointerId))}if(M.length===1){let R={...x(Sn),position:v(m),deviceType:T(m)};t.leftButtonPressEvent(R)}},t.handleTouchMove=m=>{let M=[...a.values()];if(e.recognizeGestures&&M.length>1){let R=is(a);t.recognizeGesture("TouchMove",R)}else if(M.length===1){Mc(M[0].position,e.startingEventPositions[M[0].pointerId])>e.longTapMaximumDistance*e.longTapMaximumDistance&&g();let R={...x(Sn),position:M[0].position,deviceType:T(m)};t.mouseMoveEvent(R)}},t.handleTouchEnd=m=>{let M=[...a.values()];if(e.recognizeGestures)if(M.length===0){h(m);let R={...x(Sn),position:v(m),deviceType:T(m)};t.leftButtonReleaseEvent(R)}else if(M.length===1){let R=is(a);t.recognizeGesture("TouchEnd",R);let E={...x(Sn),position:M[0].position,deviceType:T(m)};t.leftButtonPressEvent(E)}else{let R=is(a);t.recognizeGesture("TouchMove",R)}else if(M.length===1){let R={...x(Sn),position:M[0].position,deviceType:T(m)};t.leftButtonReleaseEvent(R)}},t.setView=m=>{e._view!==m&&(e._view=m,e._view.getRenderable().setInteractor(t),t.modified())},t.getFirstRenderer=()=>e._view?.getRenderable()?.getRenderersByReference()?.[0],t.findPokedRenderer=(m=0,M=0)=>{if(!e._view)return null;let R=e._view?.getRenderable()?.getRenderers();if(!R||R.length===0)return null;R.sort((L,B)=>L.getLayer()-B.getLayer());let E=null,V=null,N=null,_=R.length;for(;_--;){let L=R[_];if(e._view.isInViewport(m,M,L)&&L.getInteractive()){N=L;break}E===null&&L.getInteractive()&&(E=L),V===null&&e._view.isInViewport(m,M,L)&&(V=L)}return N===null&&(N=E),N===null&&(N=V),N==null&&(N=R[0]),N},t.render=()=>{!t.isAnimating()&&!e.inRender&&D()},Ec.forEach(m=>{let M=m.charAt(0).toLowerCase()+m.slice(1);t[`${M}Event`]=R=>{if(!e.enabled)return;if(!t.getCurrentRenderer()){VM(`
          Can not forward events without a current renderer on the interactor.
        `);return}let E={type:m,pokedRenderer:e.currentRenderer,firstRenderer:t.getFirstRenderer(),...R};t[`invoke${m}`](E)}}),t.recognizeGesture=(m,M)=>{if(Object.keys(M).length>2)return;if(m==="TouchStart"){e.currentGesture="Start";return}if(m==="TouchEnd"){e.currentGesture==="Pinch"&&(t.render(),t.endPinchEvent()),e.currentGesture==="Rotate"&&(t.render(),t.endRotateEvent()),e.currentGesture==="Pan"&&(t.render(),t.endPanEvent()),e.currentGesture="Start",e.startingEventPositions={};return}let R=0,E=[],V=[];Object.keys(M).forEach(U=>{E[R]=M[U],V[R]=e.startingEventPositions[U],R++});let N=Math.sqrt(Mc(V[0],V[1])),_=Math.sqrt(Mc(E[0],E[1])),L=jt(Math.atan2(V[1].y-V[0].y,V[1].x-V[0].x)),B=jt(Math.atan2(E[1].y-E[0].y,E[1].x-E[0].x)),b=B-L;B=B+180>=360?B-180:B+180,L=L+180>=360?L-180:L+180,Math.abs(B-L)<Math.abs(b)&&(b=B-L);let G=[];if(G[0]=(E[0].x-V[0].x+E[1].x-V[1].x)/2,G[1]=(E[0].y-V[0].y+E[1].y-V[1].y)/2,m==="TouchMove")if(e.currentGesture==="Start"){let U=1e-4*(e.container.clientWidth*e.container.clientWidth+e.container.clientHeight*e.container.clientHeight);U<225&&(U=225);let z=Math.abs(_-N),A=z*z,Q=_*3.1415926*Math.abs(b)/360,X=Q*Q,te=G[0]*G[0]+G[1]*G[1];if(A>U&&z>Q&&A>te){e.currentGesture="Pinch";let I={scale:1,touches:M};t.startPinchEvent(I)}else if(X>U&&X>te){e.currentGesture="Rotate";let I={rotation:0,touches:M};t.startRotateEvent(I)}else if(te>U){e.currentGesture="Pan";let I={translation:[0,0],touches:M};t.startPanEvent(I)}}else{if(e.currentGesture==="Rotate"){let U={rotation:b,touches:M};t.rotateEvent(U)}if(e.currentGesture==="Pinch"){let U={scale:_/N,touches:M};t.pinchEvent(U)}if(e.currentGesture==="Pan"){let U={translation:G,touches:M};t.panEvent(U)}}},t.handleVisibilityChange=()=>{e._animationStartTime=Date.now(),e._animationFrameCount=0},t.setCurrentRenderer=m=>{e._forcedRenderer=!!m,e.currentRenderer=m},t.setContainer=m=>{C();let M=n.setContainer(m??null);return M&&d(),M},t.delete=()=>{for(;r.size;)t.cancelAnimation(r.values().next().value);typeof document.hidden<"u"&&document.removeEventListener("visibilitychange",t.handleVisibilityChange),e.container&&t.setContainer(null),n.delete()},t.getMouseScrollDebounceByPass=()=>e.wheelEndDebounceDelay===0,t.setMouseScrollDebounceByPass=m=>(ma("mouseScrollDebounceByPass is deprecated. Use wheelEndDebounceDelay instead."),t.setWheelEndDebounceDelay(m?0:c0.wheelEndDebounceDelay)),typeof document.hidden<"u"&&document.addEventListener("visibilitychange",t.handleVisibilityChange,!1)}var c0={renderWindow:null,interactorStyle:null,picker:null,pickingManager:null,initialized:!1,enabled:!1,enableRender:!0,currentRenderer:null,lightFollowCamera:!0,desiredUpdateRate:30,stillUpdateRate:2,container:null,recognizeGestures:!0,currentGesture:"Start",animationRequest:null,lastFrameTime:.1,recentAnimationFrameRate:10,moveTimeoutID:0,lastGamepadValues:{},preventDefaultOnPointerDown:!1,preventDefaultOnPointerUp:!1,wheelEndDebounceDelay:200,mouseWheelSpinYBuffering:!1,longTapDuration:500,longTapMaximumDistance:30};function f0(t,e,n={}){Object.assign(e,c0,n),O.obj(t,e),e._animationExtendedEnd=0,O.event(t,e,"RenderEvent"),Ec.forEach(r=>O.event(t,e,r)),O.get(t,e,["initialized","interactorStyle","lastFrameTime","recentAnimationFrameRate","_view"]),O.setGet(t,e,["container","lightFollowCamera","enabled","enableRender","recognizeGestures","desiredUpdateRate","stillUpdateRate","picker","preventDefaultOnPointerDown","preventDefaultOnPointerUp","wheelEndDebounceDelay","mouseWheelSpinYBuffering","longTapDuration","longTapMaximumDistance"]),O.moveToProtected(t,e,["view"]),_M(t,e)}var FM=O.newInstance(f0,"vtkRenderWindowInteractor"),ss={newInstance:FM,extend:f0,handledEvents:Ec,...Oc};var NM={IS_START:0,IS_NONE:0,IS_ROTATE:1,IS_PAN:2,IS_SPIN:3,IS_DOLLY:4,IS_CAMERA_POSE:11,IS_WINDOW_LEVEL:1024,IS_SLICE:1025},Sa={States:NM};var{vtkErrorMacro:BM,VOID:GM}=O;function UM(t,e,n,r){return t.getRenderWindow().getViews()[0].worldToDisplay(e,n,r,t)}function kM(t,e,n,r){return t.getRenderWindow().getViews()[0].displayToWorld(e,n,r,t)}var bM={computeWorldToDisplay:UM,computeDisplayToWorld:kM};function zM(t,e){e.classHierarchy.push("vtkInteractorObserver");let n={...t};function r(){for(;e.subscribedEvents.length;)e.subscribedEvents.pop().unsubscribe()}function a(){ss.handledEvents.forEach(i=>{t[`handle${i}`]&&e.subscribedEvents.push(e._interactor[`on${i}`](s=>e.processEvents?t[`handle${i}`](s):GM,e.priority))})}t.setInteractor=i=>{i!==e._interactor&&(r(),e._interactor=i,i&&e.enabled&&a(),t.modified())},t.setEnabled=i=>{i!==e.enabled&&(r(),i&&(e._interactor?a():BM(`
          The interactor must be set before subscribing to events
        `)),e.enabled=i,t.modified())},t.computeDisplayToWorld=(i,s,o,c)=>i?e._interactor.getView().displayToWorld(s,o,c,i):null,t.computeWorldToDisplay=(i,s,o,c)=>i?e._interactor.getView().worldToDisplay(s,o,c,i):null,t.setPriority=i=>{n.setPriority(i)&&e._interactor&&(r(),a())}}var WM={enabled:!0,priority:0,processEvents:!0,subscribedEvents:[]};function u0(t,e,n={}){Object.assign(e,WM,n),O.obj(t,e),O.event(t,e,"InteractionEvent"),O.event(t,e,"StartInteractionEvent"),O.event(t,e,"EndInteractionEvent"),O.get(t,e,["_interactor","enabled"]),O.setGet(t,e,["priority","processEvents"]),O.moveToProtected(t,e,["interactor"]),zM(t,e)}var AM=O.newInstance(u0,"vtkInteractorObserver"),l0={newInstance:AM,extend:u0,...bM};var{States:zt}=Sa,Dc={Rotate:zt.IS_ROTATE,Pan:zt.IS_PAN,Spin:zt.IS_SPIN,Dolly:zt.IS_DOLLY,CameraPose:zt.IS_CAMERA_POSE,WindowLevel:zt.IS_WINDOW_LEVEL,Slice:zt.IS_SLICE};function PM(t,e){e.classHierarchy.push("vtkInteractorStyle"),Object.keys(Dc).forEach(n=>{O.event(t,e,`Start${n}Event`),t[`start${n}`]=()=>{e.state===zt.IS_NONE&&(e.state=Dc[n],e._interactor.requestAnimation(t),t.invokeStartInteractionEvent({type:"StartInteractionEvent"}),t[`invokeStart${n}Event`]({type:`Start${n}Event`}))},O.event(t,e,`End${n}Event`),t[`end${n}`]=()=>{e.state===Dc[n]&&(e.state=zt.IS_NONE,e._interactor.cancelAnimation(t),t.invokeEndInteractionEvent({type:"EndInteractionEvent"}),t[`invokeEnd${n}Event`]({type:`End${n}Event`}),e._interactor.render())}}),e.getRenderer=n=>e.focusedRenderer||n.pokedRenderer,t.handleKeyPress=n=>{let r=e._interactor,a=null;switch(n.key){case"r":case"R":e.getRenderer(n).resetCamera(),r.render();break;case"w":case"W":a=e.getRenderer(n).getActors(),a.forEach(i=>{let s=i.getProperty();s.setRepresentationToWireframe&&s.setRepresentationToWireframe()}),r.render();break;case"s":case"S":a=e.getRenderer(n).getActors(),a.forEach(i=>{let s=i.getProperty();s.setRepresentationToSurface&&s.setRepresentationToSurface()}),r.render();break;case"v":case"V":a=e.getRenderer(n).getActors(),a.forEach(i=>{let s=i.getProperty();s.setRepresentationToPoints&&s.setRepresentationToPoints()}),r.render();break;default:break}}}var HM={state:zt.IS_NONE,handleObservers:1,autoAdjustCameraClippingRange:1};function g0(t,e,n={}){Object.assign(e,HM,n),l0.extend(t,e,n),O.setGet(t,e,["focusedRenderer"]),PM(t,e)}var IM=O.newInstance(g0,"vtkInteractorStyle"),p0={newInstance:IM,extend:g0,...Sa};var{States:Wt}=Sa;function jM(t,e){e.classHierarchy.push("vtkInteractorStyleTrackballCamera"),t.handleMouseMove=n=>{let r=n.position,a=e.getRenderer(n);switch(e.state){case Wt.IS_ROTATE:t.handleMouseRotate(a,r),t.invokeInteractionEvent({type:"InteractionEvent"});break;case Wt.IS_PAN:t.handleMousePan(a,r),t.invokeInteractionEvent({type:"InteractionEvent"});break;case Wt.IS_DOLLY:e.wheelDolly||(t.handleMouseDolly(a,r),t.invokeInteractionEvent({type:"InteractionEvent"}));break;case Wt.IS_SPIN:t.handleMouseSpin(a,r),t.invokeInteractionEvent({type:"InteractionEvent"});break;default:break}e.previousPosition=r},t.handleButton3D=n=>{if(n&&n.pressed&&n.device===ns.RightController&&(n.input===Nr.Trigger||n.input===Nr.TrackPad)){t.startCameraPose();return}n&&!n.pressed&&n.device===ns.RightController&&(n.input===Nr.Trigger||n.input===Nr.TrackPad)&&e.state===Wt.IS_CAMERA_POSE&&t.endCameraPose()},t.handleMove3D=n=>{e.state===Wt.IS_CAMERA_POSE&&t.updateCameraPose(n)},t.updateCameraPose=n=>{let r=e.getRenderer(n).getActiveCamera(),a=r.getPhysicalTranslation(),i=.5*.05*r.getPhysicalScale(),s=r.physicalOrientationToWorldDirection([n.orientation.x,n.orientation.y,n.orientation.z,n.orientation.w]);r.setPhysicalTranslation(a[0]+s[0]*i,a[1]+s[1]*i,a[2]+s[2]*i)},t.handleLeftButtonPress=n=>{e.previousPosition=n.position,n.shiftKey?n.controlKey||n.altKey?t.startDolly():t.startPan():n.controlKey||n.altKey?t.startSpin():t.startRotate()},t.handleLeftButtonRelease=()=>{switch(e.state){case Wt.IS_DOLLY:t.endDolly();break;case Wt.IS_PAN:t.endPan();break;case Wt.IS_SPIN:t.endSpin();break;case Wt.IS_ROTATE:t.endRotate();break;default:break}},t.handleStartMouseWheel=()=>{e.wheelDolly=!0,t.startDolly()},t.handleEndMouseWheel=()=>{t.endDolly(),e.wheelDolly=!1},t.handleStartPinch=n=>{e.previousScale=n.scale,t.startDolly()},t.handleEndPinch=()=>{t.endDolly()},t.handleStartRotate=n=>{e.previousRotation=n.rotation,t.startRotate()},t.handleEndRotate=()=>{t.endRotate()},t.handleStartPan=n=>{e.previousTranslation=n.translation,t.startPan()},t.handleEndPan=()=>{t.endPan()},t.handlePinch=n=>{t.dollyByFactor(e.getRenderer(n),n.scale/e.previousScale),e.previousScale=n.scale},t.handlePan=n=>{let r=e.getRenderer(n).getActiveCamera(),a=r.getFocalPoint();a=t.computeWorldToDisplay(e.getRenderer(n),a[0],a[1],a[2]);let i=a[2],s=n.translation,o=e.previousTranslation,c=t.computeDisplayToWorld(e.getRenderer(n),a[0]+s[0]-o[0],a[1]+s[1]-o[1],i),f=t.computeDisplayToWorld(e.getRenderer(n),a[0],a[1],i),u=[];u[0]=f[0]-c[0],u[1]=f[1]-c[1],u[2]=f[2]-c[2],a=r.getFocalPoint();let g=r.getPosition();r.setFocalPoint(u[0]+a[0],u[1]+a[1],u[2]+a[2]),r.setPosition(u[0]+g[0],u[1]+g[1],u[2]+g[2]),e._interactor.getLightFollowCamera()&&e.getRenderer(n).updateLightsGeometryToFollowCamera(),r.orthogonalizeViewUp(),e.previousTranslation=n.translation},t.handleRotate=n=>{let r=e.getRenderer(n).getActiveCamera();r.roll(n.rotation-e.previousRotation),r.orthogonalizeViewUp(),e.previousRotation=n.rotation},t.handleMouseRotate=(n,r)=>{if(!e.previousPosition)return;let a=e._interactor,i=r.x-e.previousPosition.x,s=r.y-e.previousPosition.y,o=a.getView().getViewportSize(n),c=-.1,f=-.1;o[0]&&o[1]&&(c=-20/o[1],f=-20/o[0]);let u=i*f*e.motionFactor,g=s*c*e.motionFactor,l=n.getActiveCamera();!Number.isNaN(u)&&!Number.isNaN(g)&&(l.azimuth(u),l.elevation(g),l.orthogonalizeViewUp()),e.autoAdjustCameraClippingRange&&n.resetCameraClippingRange(),a.getLightFollowCamera()&&n.updateLightsGeometryToFollowCamera()},t.handleMouseSpin=(n,r)=>{if(!e.previousPosition)return;let a=e._interactor,i=n.getActiveCamera(),s=a.getView().getViewportCenter(n),o=jt(Math.atan2(e.previousPosition.y-s[1],e.previousPosition.x-s[0])),c=jt(Math.atan2(r.y-s[1],r.x-s[0]))-o;Number.isNaN(c)||(i.roll(c),i.orthogonalizeViewUp())},t.handleMousePan=(n,r)=>{if(!e.previousPosition)return;let a=n.getActiveCamera(),i=a.getFocalPoint();i=t.computeWorldToDisplay(n,i[0],i[1],i[2]);let s=i[2],o=t.computeDisplayToWorld(n,r.x,r.y,s),c=t.computeDisplayToWorld(n,e.previousPosition.x,e.previousPosition.y,s),f=[];f[0]=c[0]-o[0],f[1]=c[1]-o[1],f[2]=c[2]-o[2],i=a.getFocalPoint();let u=a.getPosition();a.setFocalPoint(f[0]+i[0],f[1]+i[1],f[2]+i[2]),a.setPosition(f[0]+u[0],f[1]+u[1],f[2]+u[2]),e._interactor.getLightFollowCamera()&&n.updateLightsGeometryToFollowCamera()},t.handleMouseDolly=(n,r)=>{if(!e.previousPosition)return;let a=r.y-e.previousPosition.y,i=e._interactor.getView().getViewportCenter(n),s=e.motionFactor*a/i[1];t.dollyByFactor(n,1.1**s)},t.handleMouseWheel=n=>{let r=Math.exp(-n.spinY/e.zoomFactor);t.dollyByFactor(e.getRenderer(n),r)},t.dollyByFactor=(n,r)=>{if(Number.isNaN(r))return;let a=n.getActiveCamera();a.getParallelProjection()?a.setParallelScale(a.getParallelScale()/r):(a.dolly(r),e.autoAdjustCameraClippingRange&&n.resetCameraClippingRange()),e._interactor.getLightFollowCamera()&&n.updateLightsGeometryToFollowCamera()}}var $M={motionFactor:10,zoomFactor:10,wheelDolly:!1};function h0(t,e,n={}){Object.assign(e,$M,n),p0.extend(t,e,n),O.setGet(t,e,["motionFactor","zoomFactor"]),jM(t,e)}var KM=O.newInstance(h0,"vtkInteractorStyleTrackballCamera"),v0={newInstance:KM,extend:h0};var{vtkDebugMacro:os,vtkWarningMacro:XM}=O,d0=!1;function YM(t,e){e.classHierarchy.push("vtkCamera");let n=new Float64Array(3),r=new Float64Array([0,0,-1]),a=new Float64Array([0,1,0]),i=F.identity(new Float64Array(16)),s=F.identity(new Float64Array(16)),o=F.identity(new Float64Array(16)),c=new Float64Array(3),f=new Float64Array(3),u=new Float64Array(3),g=F.identity(new Float64Array(16)),l=F.identity(new Float64Array(16)),h=new Float64Array(3),y=new Float64Array(3);function p(){e.viewPlaneNormal[0]=-e.directionOfProjection[0],e.viewPlaneNormal[1]=-e.directionOfProjection[1],e.viewPlaneNormal[2]=-e.directionOfProjection[2]}t.orthogonalizeViewUp=()=>{t.getViewMatrix(i),e.viewUp[0]=i[4],e.viewUp[1]=i[5],e.viewUp[2]=i[6],t.modified()};let v=(T,d,C)=>T===e.position[0]&&d===e.position[1]&&C===e.position[2]?!1:(e.position[0]=T,e.position[1]=d,e.position[2]=C,!0);t.setPosition=(T,d,C)=>v(T,d,C)?(t.computeDistance(),t.modified(),!0):!1;let x=(T,d,C)=>T===e.focalPoint[0]&&d===e.focalPoint[1]&&C===e.focalPoint[2]?!1:(e.focalPoint[0]=T,e.focalPoint[1]=d,e.focalPoint[2]=C,!0);t.setFocalPoint=(T,d,C)=>x(T,d,C)?(t.computeDistance(),t.modified(),!0):!1,t.setPositionAndFocalPoint=(T,d)=>{let C=v(...T),w=x(...d);return C||w?(t.computeDistance(),t.modified(),!0):!1},t.setDistance=T=>{if(e.distance===T)return;e.distance=T,e.distance<1e-20&&(e.distance=1e-20,os("Distance is set to minimum."));let d=e.directionOfProjection;e.focalPoint[0]=e.position[0]+d[0]*e.distance,e.focalPoint[1]=e.position[1]+d[1]*e.distance,e.focalPoint[2]=e.position[2]+d[2]*e.distance,t.modified()},t.computeDistance=()=>{let T=e.focalPoint[0]-e.position[0],d=e.focalPoint[1]-e.position[1],C=e.focalPoint[2]-e.position[2];if(e.distance=Math.sqrt(T*T+d*d+C*C),e.distance<1e-20){e.distance=1e-20,os("Distance is set to minimum.");let w=e.directionOfProjection;e.focalPoint[0]=e.position[0]+w[0]*e.distance,e.focalPoint[1]=e.position[1]+w[1]*e.distance,e.focalPoint[2]=e.position[2]+w[2]*e.distance}e.directionOfProjection[0]=T/e.distance,e.directionOfProjection[1]=d/e.distance,e.directionOfProjection[2]=C/e.distance,p()},t.dolly=T=>{if(T<=0)return;let d=e.distance/T;t.setPosition(e.focalPoint[0]-d*e.directionOfProjection[0],e.focalPoint[1]-d*e.directionOfProjection[1],e.focalPoint[2]-d*e.directionOfProjection[2])},t.roll=T=>{let d=e.position,C=e.focalPoint,w=e.viewUp,D=new Float64Array([w[0],w[1],w[2],0]);F.identity(g);let m=new Float64Array([C[0]-d[0],C[1]-d[1],C[2]-d[2]]);F.rotate(g,g,Me(T),m),Tt.transformMat4(D,D,g),e.viewUp[0]=D[0],e.viewUp[1]=D[1],e.viewUp[2]=D[2],t.modified()},t.azimuth=T=>{let d=e.focalPoint;F.identity(l),F.translate(l,l,d),F.rotate(l,l,Me(T),e.viewUp),F.translate(l,l,[-d[0],-d[1],-d[2]]),W.transformMat4(h,e.position,l),t.setPosition(h[0],h[1],h[2])},t.yaw=T=>{let d=e.position;F.identity(l),F.translate(l,l,d),F.rotate(l,l,Me(T),e.viewUp),F.translate(l,l,[-d[0],-d[1],-d[2]]),W.transformMat4(y,e.focalPoint,l),t.setFocalPoint(y[0],y[1],y[2])},t.elevation=T=>{let d=e.focalPoint;t.getViewMatrix(i);let C=[-i[0],-i[1],-i[2]];F.identity(l),F.translate(l,l,d),F.rotate(l,l,Me(T),C),F.translate(l,l,[-d[0],-d[1],-d[2]]),W.transformMat4(h,e.position,l),t.setPosition(h[0],h[1],h[2])},t.pitch=T=>{let d=e.position;t.getViewMatrix(i);let C=[i[0],i[1],i[2]];F.identity(l),F.translate(l,l,d),F.rotate(l,l,Me(T),C),F.translate(l,l,[-d[0],-d[1],-d[2]]),W.transformMat4(y,e.focalPoint,l),t.setFocalPoint(...y)},t.zoom=T=>{T<=0||(e.parallelProjection?e.parallelScale/=T:e.viewAngle/=T,t.modified())},t.translate=(T,d,C)=>{let w=[T,d,C];$t(e.position,w,e.position),$t(e.focalPoint,w,e.focalPoint),t.computeDistance(),t.modified()},t.applyTransform=T=>{let d=[...e.viewUp,1],C=[],w=[],D=[];d[0]+=e.position[0],d[1]+=e.position[1],d[2]+=e.position[2],Tt.transformMat4(C,[...e.position,1],T),Tt.transformMat4(w,[...e.focalPoint,1],T),Tt.transformMat4(D,d,T),D[0]-=C[0],D[1]-=C[1],D[2]-=C[2],t.setPosition(...C.slice(0,3)),t.setFocalPoint(...w.slice(0,3)),t.setViewUp(...D.slice(0,3))},t.getThickness=()=>e.clippingRange[1]-e.clippingRange[0],t.setThickness=T=>{let d=T;d<1e-20&&(d=1e-20,os("Thickness is set to minimum.")),t.setClippingRange(e.clippingRange[0],e.clippingRange[0]+d)},t.setThicknessFromFocalPoint=T=>{let d=T;d<1e-20&&(d=1e-20,os("Thickness is set to minimum.")),t.setClippingRange(e.distance-d/2,e.distance+d/2)},t.setRoll=T=>{},t.getRoll=()=>{},t.setObliqueAngles=(T,d)=>{},t.getOrientation=()=>{},t.getOrientationWXYZ=()=>{},t.getFrustumPlanes=(T=1,d=new Float64Array(24))=>{let C=[[1,0,0,1],[-1,0,0,1],[0,1,0,1],[0,-1,0,1],[0,0,1,1],[0,0,-1,1]],w=t.getCompositeProjectionMatrix(T,-1,1);for(let D=0;D<6;D++)Tt.transformMat4(C[D],C[D],w),Pf(C[D]),d[4*D+0]=C[D][0],d[4*D+1]=C[D][1],d[4*D+2]=C[D][2],d[4*D+3]=C[D][3];return d},t.getCameraLightTransformMatrix=T=>(F.copy(T,e.cameraLightTransform),T),t.computeCameraLightTransform=()=>{t.getViewMatrix(i),F.invert(i,i),F.fromScaling(s,[e.distance,e.distance,e.distance]),F.multiply(i,i,s),F.identity(e.cameraLightTransform),F.translate(e.cameraLightTransform,i,[0,0,-1])},t.deepCopy=T=>{},t.physicalOrientationToWorldDirection=T=>{let d=_e.fromValues(T[0],T[1],T[2],T[3]),C=_e.create(),w=_e.fromValues(0,0,1,0);return _e.conjugate(C,d),_e.multiply(w,d,w),_e.multiply(w,w,C),[w[0],w[1],w[2]]},t.getPhysicalToWorldMatrix=T=>{t.getWorldToPhysicalMatrix(T),F.invert(T,T)},t.getWorldToPhysicalMatrix=T=>{F.identity(T);let d=[3];Ue(e.physicalViewNorth,e.physicalViewUp,d),T[0]=d[0],T[1]=d[1],T[2]=d[2],T[4]=e.physicalViewUp[0],T[5]=e.physicalViewUp[1],T[6]=e.physicalViewUp[2],T[8]=-e.physicalViewNorth[0],T[9]=-e.physicalViewNorth[1],T[10]=-e.physicalViewNorth[2],F.transpose(T,T),W.set(c,1/e.physicalScale,1/e.physicalScale,1/e.physicalScale),F.scale(T,T,c),F.translate(T,T,e.physicalTranslation)},t.computeViewParametersFromViewMatrix=T=>{F.invert(i,T),W.transformMat4(c,n,i),t.computeDistance();let d=e.distance;t.setPosition(c[0],c[1],c[2]),W.transformMat4(f,r,i),W.subtract(f,f,c),W.normalize(f,f),t.setDirectionOfProjection(f[0],f[1],f[2]),W.transformMat4(u,a,i),W.subtract(u,u,c),W.normalize(u,u),t.setViewUp(u[0],u[1],u[2]),t.setDistance(d)},t.computeViewParametersFromPhysicalMatrix=T=>{t.getWorldToPhysicalMatrix(i),F.multiply(i,T,i),t.computeViewParametersFromViewMatrix(i)},t.setViewMatrix=T=>{e.viewMatrix=T,e.viewMatrix&&(t.computeViewParametersFromViewMatrix(e.viewMatrix),F.transpose(e.viewMatrix,e.viewMatrix))};let S=T=>(e.modelTransformMatrix&&(F.transpose(o,e.modelTransformMatrix),F.multiply(T,o,T)),T);t.getViewMatrix=(T=new Float64Array(16))=>e.viewMatrix?(F.copy(T,e.viewMatrix),S(T)):(F.lookAt(T,e.position,e.focalPoint,e.viewUp),F.transpose(T,T),S(T)),t.setProjectionMatrix=T=>(d0||(d0=!0,XM("setProjectionMatrix() is deprecated. Use setExplicitProjectionMatrix() instead.")),t.setExplicitProjectionMatrix(T)),t.getProjectionMatrix=(T,d,C,w=new Float64Array(16))=>{let D=w;if(e.explicitProjectionMatrix){let R=1/e.physicalScale;return W.set(c,R,R,R),F.copy(D,e.explicitProjectionMatrix),F.scale(D,D,c),F.transpose(D,D),D}F.identity(D),F.identity(i);let m=e.clippingRange[1]-e.clippingRange[0],M=[e.clippingRange[0]+(d+1)*m/2,e.clippingRange[0]+(C+1)*m/2];if(e.parallelProjection){let R=e.parallelScale*T,E=e.parallelScale,V=(e.windowCenter[0]-1)*R,N=(e.windowCenter[0]+1)*R,_=(e.windowCenter[1]-1)*E,L=(e.windowCenter[1]+1)*E;F.ortho(i,V,N,_,L,M[0],M[1]),F.transpose(i,i)}else{if(e.useOffAxisProjection)throw new Error("Off-Axis projection is not supported at this time");{let R=Math.tan(Me(e.viewAngle)/2),E,V;e.useHorizontalViewAngle===!0?(E=e.clippingRange[0]*R,V=e.clippingRange[0]*R/T):(E=e.clippingRange[0]*R*T,V=e.clippingRange[0]*R);let N=(e.windowCenter[0]-1)*E,_=(e.windowCenter[0]+1)*E,L=(e.windowCenter[1]-1)*V,B=(e.windowCenter[1]+1)*V,b=M[0],G=M[1];i[0]=2*b/(_-N),i[5]=2*b/(B-L),i[2]=(N+_)/(_-N),i[6]=(L+B)/(B-L),i[10]=-(b+G)/(G-b),i[14]=-1,i[11]=-2*b*G/(G-b),i[15]=0}}return F.copy(D,i),D},t.getCompositeProjectionMatrix=(T,d,C)=>{let w=t.getViewMatrix(),D=t.getProjectionMatrix(T,d,C);return F.multiply(D,w,D),D},t.setDirectionOfProjection=(T,d,C)=>{if(e.directionOfProjection[0]===T&&e.directionOfProjection[1]===d&&e.directionOfProjection[2]===C)return;e.directionOfProjection[0]=T,e.directionOfProjection[1]=d,e.directionOfProjection[2]=C;let w=e.directionOfProjection;e.focalPoint[0]=e.position[0]+w[0]*e.distance,e.focalPoint[1]=e.position[1]+w[1]*e.distance,e.focalPoint[2]=e.position[2]+w[2]*e.distance,p()},t.setDeviceAngles=(T,d,C,w)=>{let D=[3];Ue(e.physicalViewNorth,e.physicalViewUp,D);let m=F.identity(new Float64Array(16));F.rotate(m,m,Me(T),e.physicalViewUp),F.rotate(m,m,Me(d),D),F.rotate(m,m,Me(C),e.physicalViewNorth),F.rotate(m,m,Me(-w),e.physicalViewUp);let M=new Float64Array([-e.physicalViewUp[0],-e.physicalViewUp[1],-e.physicalViewUp[2]]),R=new Float64Array(e.physicalViewNorth);W.transformMat4(M,M,m),W.transformMat4(R,R,m),t.setDirectionOfProjection(M[0],M[1],M[2]),t.setViewUp(R[0],R[1],R[2]),t.modified()},t.setOrientationWXYZ=(T,d,C,w)=>{let D=F.identity(new Float64Array(16));if(T!==0&&(d!==0||C!==0||w!==0)){let R=Me(T),E=_e.create();_e.setAxisAngle(E,[d,C,w],R),F.fromQuat(D,E)}let m=new Float64Array(3);W.transformMat4(m,[0,0,-1],D);let M=new Float64Array(3);W.transformMat4(M,[0,1,0],D),t.setDirectionOfProjection(...m),t.setViewUp(...M),t.modified()},t.computeClippingRange=T=>{let d=null,C=null;d=e.viewPlaneNormal,C=e.position;let w=-d[0],D=-d[1],m=-d[2],M=-(w*C[0]+D*C[1]+m*C[2]),R=[w*T[0]+D*T[2]+m*T[4]+M,1e-18];for(let E=0;E<2;E++)for(let V=0;V<2;V++)for(let N=0;N<2;N++){let _=w*T[N]+D*T[2+V]+m*T[4+E]+M;R[0]=_<R[0]?_:R[0],R[1]=_>R[1]?_:R[1]}return R}}var qM={position:[0,0,1],focalPoint:[0,0,0],viewUp:[0,1,0],directionOfProjection:[0,0,-1],parallelProjection:!1,useHorizontalViewAngle:!1,viewAngle:30,parallelScale:1,clippingRange:[.01,1000.01],windowCenter:[0,0],viewPlaneNormal:[0,0,1],useOffAxisProjection:!1,screenBottomLeft:[-.5,-.5,-.5],screenBottomRight:[.5,-.5,-.5],screenTopRight:[.5,.5,-.5],freezeFocalPoint:!1,explicitProjectionMatrix:null,viewMatrix:null,modelTransformMatrix:null,cameraLightTransform:F.create(),physicalTranslation:[0,0,0],physicalScale:1,physicalViewUp:[0,1,0],physicalViewNorth:[0,0,-1]};function T0(t,e,n={}){Object.assign(e,qM,n),O.obj(t,e),O.get(t,e,["distance"]),O.setGet(t,e,["parallelProjection","useHorizontalViewAngle","viewAngle","parallelScale","useOffAxisProjection","freezeFocalPoint","physicalScale","modelTransformMatrix","explicitProjectionMatrix"]),O.getArray(t,e,["directionOfProjection","viewPlaneNormal","position","focalPoint"]),O.setGetArray(t,e,["clippingRange","windowCenter"],2),O.setGetArray(t,e,["viewUp","screenBottomLeft","screenBottomRight","screenTopRight","physicalTranslation","physicalViewUp","physicalViewNorth"],3),YM(t,e)}var ZM=O.newInstance(T0,"vtkCamera"),x0={newInstance:ZM,extend:T0};var QM=["HeadLight","CameraLight","SceneLight"];function JM(t,e){e.classHierarchy.push("vtkLight");let n=new Float64Array(3);t.getTransformedPosition=()=>(e.transformMatrix?W.transformMat4(n,e.position,e.transformMatrix):W.set(n,e.position[0],e.position[1],e.position[2]),n),t.getTransformedFocalPoint=()=>(e.transformMatrix?W.transformMat4(n,e.focalPoint,e.transformMatrix):W.set(n,e.focalPoint[0],e.focalPoint[1],e.focalPoint[2]),n),t.getDirection=()=>(e.directionMTime<e.mtime&&(W.sub(e.direction,e.focalPoint,e.position),$e(e.direction),e.directionMTime=e.mtime),e.direction),t.setDirection=r=>{let a=new Float64Array(3);W.sub(a,e.position,r),e.focalPoint=a},t.setDirectionAngle=(r,a)=>{let i=Me(r),s=Me(a);t.setPosition(Math.cos(i)*Math.sin(s),Math.sin(i),Math.cos(i)*Math.cos(s)),t.setFocalPoint(0,0,0),t.setPositional(0)},t.setLightTypeToHeadLight=()=>{t.setLightType("HeadLight")},t.setLightTypeToCameraLight=()=>{t.setLightType("CameraLight")},t.setLightTypeToSceneLight=()=>{t.setTransformMatrix(null),t.setLightType("SceneLight")},t.lightTypeIsHeadLight=()=>e.lightType==="HeadLight",t.lightTypeIsSceneLight=()=>e.lightType==="SceneLight",t.lightTypeIsCameraLight=()=>e.lightType==="CameraLight"}var eE={switch:!0,intensity:1,color:[1,1,1],position:[0,0,1],focalPoint:[0,0,0],positional:!1,exponent:1,coneAngle:30,coneFalloff:5,attenuationValues:[1,0,0],transformMatrix:null,lightType:"SceneLight",shadowAttenuation:1,direction:[0,0,0],directionMTime:0};function y0(t,e,n={}){Object.assign(e,eE,n),O.obj(t,e),O.setGet(t,e,["intensity","switch","positional","exponent","coneAngle","coneFalloff","transformMatrix","lightType","shadowAttenuation","attenuationValues"]),O.setGetArray(t,e,["color","position","focalPoint","attenuationValues"],3),JM(t,e)}var tE=O.newInstance(y0,"vtkLight"),m0={newInstance:tE,extend:y0,LIGHT_TYPES:QM};var{vtkErrorMacro:cs}=O;function nE(t){return()=>cs(`vtkViewport::${t} - NOT IMPLEMENTED`)}function rE(t,e){e.classHierarchy.push("vtkViewport"),t.getViewProps=()=>e.props,t.hasViewProp=r=>e.props.includes(r),t.addViewProp=r=>{r&&!t.hasViewProp(r)&&e.props.push(r)},t.removeViewProp=r=>{let a=e.props.filter(i=>i!==r);e.props.length!==a.length&&(e.props=a)},t.removeAllViewProps=()=>{e.props=[]};function n(r,a=[]){a.push(r);let i=r.getNestedProps();if(i&&i.length)for(let s=0;s<i.length;s++)n(i[s],a);return a}t.getViewPropsWithNestedProps=()=>{let r=[];e.actors2D=[];for(let a=0;a<e.props.length;a++){let i=e.props[a].getActors2D();i&&(!Array.isArray(i)||i.length>0)?e.actors2D=e.actors2D.concat(i):n(e.props[a],r)}return e.actors2D.sort((a,i)=>a.getLayerNumber()-i.getLayerNumber()),r=r.concat(e.actors2D),r},t.addActor2D=t.addViewProp,t.removeActor2D=r=>{t.removeViewProp(r)},t.getActors2D=()=>(e.actors2D=[],e.props.forEach(r=>{e.actors2D=e.actors2D.concat(r.getActors2D())}),e.actors2D),t.displayToView=()=>cs("call displayToView on your view instead"),t.viewToDisplay=()=>cs("callviewtodisplay on your view instead"),t.getSize=()=>cs("call getSize on your View instead"),t.normalizedDisplayToProjection=(r,a,i)=>{let s=t.normalizedDisplayToNormalizedViewport(r,a,i);return t.normalizedViewportToProjection(s[0],s[1],s[2])},t.normalizedDisplayToNormalizedViewport=(r,a,i)=>{let s=[e.viewport[2]-e.viewport[0],e.viewport[3]-e.viewport[1]];return[(r-e.viewport[0])/s[0],(a-e.viewport[1])/s[1],i]},t.normalizedViewportToProjection=(r,a,i)=>[r*2-1,a*2-1,i*2-1],t.projectionToNormalizedDisplay=(r,a,i)=>{let s=t.projectionToNormalizedViewport(r,a,i);return t.normalizedViewportToNormalizedDisplay(s[0],s[1],s[2])},t.normalizedViewportToNormalizedDisplay=(r,a,i)=>{let s=[e.viewport[2]-e.viewport[0],e.viewport[3]-e.viewport[1]];return[r*s[0]+e.viewport[0],a*s[1]+e.viewport[1],i]},t.projectionToNormalizedViewport=(r,a,i)=>[(r+1)*.5,(a+1)*.5,(i+1)*.5],t.PickPropFrom=nE("PickPropFrom")}var aE={background:[0,0,0],background2:[.2,.2,.2],gradientBackground:!1,viewport:[0,0,1,1],aspect:[1,1],pixelAspect:[1,1],props:[],actors2D:[]};function S0(t,e,n={}){Object.assign(e,aE,n),O.obj(t,e),O.event(t,e,"event"),O.setGet(t,e,["gradientBackground"]),O.setGetArray(t,e,["viewport"],4),O.setGetArray(t,e,["background","background2"],3),rE(t,e)}var iE=O.newInstance(S0,"vtkViewport"),C0={newInstance:iE,extend:S0};var{vtkDebugMacro:Ca,vtkErrorMacro:Cn,vtkWarningMacro:sE}=Ce;function w0(t){return()=>Cn(`vtkRenderer::${t} - NOT IMPLEMENTED`)}function O0(t,e){let n=[];for(let r=0;r<t.length;r++){let a=e(t[r]);if(Array.isArray(a))for(let i=0;i<a.length;i++)n.push(a[i]);else n.push(a)}return n}var oE=t=>t.getActors(),cE=t=>t.getVolumes();function fE(t,e){e.classHierarchy.push("vtkRenderer");let n={type:"ComputeVisiblePropBoundsEvent",renderer:t},r={type:"ResetCameraClippingRangeEvent",renderer:t},a={type:"ResetCameraEvent",renderer:t};function i(s,o){return o?$.transformBounds(s,o,[]):s}t.updateCamera=()=>(e.activeCamera||(Ca("No cameras are on, creating one."),t.getActiveCameraAndResetIfCreated()),e.activeCamera.render(t),!0),t.updateLightsGeometryToFollowCamera=()=>{let s=t.getActiveCameraAndResetIfCreated();e.lights.forEach(o=>{o.lightTypeIsSceneLight()||(o.lightTypeIsHeadLight()?(o.setPositionFrom(s.getPositionByReference()),o.setFocalPointFrom(s.getFocalPointByReference()),o.modified(s.getMTime())):o.lightTypeIsCameraLight()?o.setTransformMatrix(s.getCameraLightTransformMatrix(F.create())):Cn("light has unknown light type",o.get()))})},t.updateLightGeometry=()=>e.lightFollowCamera?t.updateLightsGeometryToFollowCamera():!0,t.allocateTime=w0("allocateTime"),t.updateGeometry=w0("updateGeometry"),t.getVTKWindow=()=>e._renderWindow,t.setLayer=s=>{Ca(t.getClassName(),t,"setting Layer to ",s),e.layer!==s&&(e.layer=s,t.modified()),t.setPreserveColorBuffer(!!s)},t.setActiveCamera=s=>e.activeCamera===s?!1:(e.activeCamera=s,t.modified(),t.invokeEvent({type:"ActiveCameraEvent",camera:s}),!0),t.makeCamera=()=>{let s=x0.newInstance();return t.invokeEvent({type:"CreateCameraEvent",camera:s}),s},t.getActiveCamera=()=>(e.activeCamera||(e.activeCamera=t.makeCamera()),e.activeCamera),t.getActiveCameraAndResetIfCreated=()=>(e.activeCamera||(t.getActiveCamera(),t.resetCamera()),e.activeCamera),t.getActors=()=>(e.actors=O0(e.props,oE),e.actors),t.addActor=t.addViewProp,t.removeActor=s=>{e.actors=e.actors.filter(o=>o!==s),t.removeViewProp(s),t.modified()},t.removeAllActors=()=>{t.getActors().forEach(s=>{t.removeViewProp(s)}),e.actors=[],t.modified()},t.getVolumes=()=>(e.volumes=O0(e.props,cE),e.volumes),t.addVolume=t.addViewProp,t.removeVolume=s=>{e.volumes=e.volumes.filter(o=>o!==s),t.removeViewProp(s),t.modified()},t.removeAllVolumes=()=>{t.getVolumes().forEach(s=>{t.removeViewProp(s)}),e.volumes=[],t.modified()},t.hasLight=s=>e.lights.includes(s),t.addLight=s=>{s&&!t.hasLight(s)&&(e.lights.push(s),t.modified())},t.removeLight=s=>{e.lights=e.lights.filter(o=>o!==s),t.modified()},t.removeAllLights=()=>{e.lights=[],t.modified()},t.setLightCollection=s=>{e.lights=s,t.modified()},t.makeLight=m0.newInstance,t.createLight=()=>{e.automaticLightCreation&&(e._createdLight&&(t.removeLight(e._createdLight),e._createdLight.delete(),e._createdLight=null),e._createdLight=t.makeLight(),t.addLight(e._createdLight),e._createdLight.setLightTypeToHeadLight(),e._createdLight.setPosition(t.getActiveCamera().getPosition()),e._createdLight.setFocalPoint(t.getActiveCamera().getFocalPoint()))},t.normalizedDisplayToWorld=(s,o,c,f)=>{let u=t.normalizedDisplayToProjection(s,o,c);return u=t.projectionToView(u[0],u[1],u[2],f),t.viewToWorld(u[0],u[1],u[2])},t.worldToNormalizedDisplay=(s,o,c,f)=>{let u=t.worldToView(s,o,c);return u=t.viewToProjection(u[0],u[1],u[2],f),t.projectionToNormalizedDisplay(u[0],u[1],u[2])},t.viewToWorld=(s,o,c)=>{if(e.activeCamera===null)return Cn("ViewToWorld: no active camera, cannot compute view to world, returning 0,0,0"),[0,0,0];let f=e.activeCamera.getViewMatrix();F.invert(f,f),F.transpose(f,f);let u=new Float64Array([s,o,c]);return W.transformMat4(u,u,f),u},t.projectionToView=(s,o,c,f)=>{if(e.activeCamera===null)return Cn("ProjectionToView: no active camera, cannot compute projection to view, returning 0,0,0"),[0,0,0];let u=e.activeCamera.getProjectionMatrix(f,-1,1);F.invert(u,u),F.transpose(u,u);let g=new Float64Array([s,o,c]);return W.transformMat4(g,g,u),g},t.worldToView=(s,o,c)=>{if(e.activeCamera===null)return Cn("WorldToView: no active camera, cannot compute view to world, returning 0,0,0"),[0,0,0];let f=e.activeCamera.getViewMatrix();F.transpose(f,f);let u=new Float64Array([s,o,c]);return W.transformMat4(u,u,f),u},t.viewToProjection=(s,o,c,f)=>{if(e.activeCamera===null)return Cn("ViewToProjection: no active camera, cannot compute view to projection, returning 0,0,0"),[0,0,0];let u=e.activeCamera.getProjectionMatrix(f,-1,1);F.transpose(u,u);let g=new Float64Array([s,o,c]);return W.transformMat4(g,g,u),g},t.computeVisiblePropBounds=()=>{e.allBounds[0]=$.INIT_BOUNDS[0],e.allBounds[1]=$.INIT_BOUNDS[1],e.allBounds[2]=$.INIT_BOUNDS[2],e.allBounds[3]=$.INIT_BOUNDS[3],e.allBounds[4]=$.INIT_BOUNDS[4],e.allBounds[5]=$.INIT_BOUNDS[5];let s=!0;t.invokeEvent(n);for(let o=0;o<e.props.length;++o){let c=e.props[o];if(c.getVisibility()&&c.getUseBounds()){let f=c.getBounds();f&&Qr(f)&&(s=!1,f[0]<e.allBounds[0]&&(e.allBounds[0]=f[0]),f[1]>e.allBounds[1]&&(e.allBounds[1]=f[1]),f[2]<e.allBounds[2]&&(e.allBounds[2]=f[2]),f[3]>e.allBounds[3]&&(e.allBounds[3]=f[3]),f[4]<e.allBounds[4]&&(e.allBounds[4]=f[4]),f[5]>e.allBounds[5]&&(e.allBounds[5]=f[5]))}}return s&&(Zr(e.allBounds),Ca("Can't compute bounds, no 3D props are visible")),e.allBounds},t.resetCamera=(s=null)=>{let o=s||t.computeVisiblePropBounds();if(!Qr(o))return Ca("Cannot reset camera!"),!1;let c=null;if(t.getActiveCamera())c=e.activeCamera.getViewPlaneNormal();else return Cn("Trying to reset non-existent camera"),!1;e.activeCamera.setViewAngle(30);let f=i(o,e.activeCamera.getModelTransformMatrix()),u=$.getCenter(f),g=$.getLength(f,0),l=$.getLength(f,1),h=$.getLength(f,2);g*=g,l*=l,h*=h;let y=g+l+h;y=y===0?1:y,y=Math.sqrt(y)*.5;let p=Me(e.activeCamera.getViewAngle()),v=y,x=y/Math.sin(p*.5),S=e.activeCamera.getViewUp();return Math.abs(q(S,c))>.999&&(sE("Resetting view-up since view plane normal is parallel"),e.activeCamera.setViewUp(-S[2],S[0],S[1])),e.activeCamera.setFocalPoint(u[0],u[1],u[2]),e.activeCamera.setPosition(u[0]+x*c[0],u[1]+x*c[1],u[2]+x*c[2]),t.resetCameraClippingRange(o),e.activeCamera.setParallelScale(v),e.activeCamera.setPhysicalScale(y),e.activeCamera.setPhysicalTranslation(-u[0],-u[1],-u[2]),t.invokeEvent(a),!0},t.resetCameraClippingRange=(s=null)=>{let o=s||t.computeVisiblePropBounds();if(!Qr(o))return Ca("Cannot reset camera clipping range!"),!1;if(t.getActiveCameraAndResetIfCreated(),!e.activeCamera)return Cn("Trying to reset clipping range of non-existent camera"),!1;let c=e.activeCamera.computeClippingRange(i(o,e.activeCamera.getModelTransformMatrix())),f=0;if(e.activeCamera.getParallelProjection())f=.2*e.activeCamera.getParallelScale();else{let u=Me(e.activeCamera.getViewAngle());f=.2*Math.tan(u/2)*c[1]}return c[1]-c[0]<f&&(f=f-c[1]+c[0],c[1]+=f/2,c[0]-=f/2),c[0]<0&&(c[0]=0),c[0]=.99*c[0]-(c[1]-c[0])*e.clippingRangeExpansion,c[1]=1.01*c[1]+(c[1]-c[0])*e.clippingRangeExpansion,c[0]=c[0]>=c[1]?.01*c[1]:c[0],e.nearClippingPlaneTolerance||(e.nearClippingPlaneTolerance=.01),c[0]<e.nearClippingPlaneTolerance*c[1]&&(c[0]=e.nearClippingPlaneTolerance*c[1]),e.activeCamera.setClippingRange(c[0],c[1]),t.invokeEvent(r),!1},t.setRenderWindow=s=>{s!==e._renderWindow&&(e._vtkWindow=s,e._renderWindow=s)},t.visibleActorCount=()=>e.props.filter(s=>s.getVisibility()).length,t.visibleVolumeCount=t.visibleActorCount,t.getMTime=()=>{let s=e.mtime,o=e.activeCamera?e.activeCamera.getMTime():0;o>s&&(s=o);let c=e._createdLight?e._createdLight.getMTime():0;return c>s&&(s=c),s},t.getTransparent=()=>!!e.preserveColorBuffer,t.isActiveCameraCreated=()=>!!e.activeCamera}var uE={pickedProp:null,activeCamera:null,allBounds:[],ambient:[1,1,1],allocatedRenderTime:100,timeFactor:1,automaticLightCreation:!0,twoSidedLighting:!0,lastRenderTimeInSeconds:-1,renderWindow:null,lights:[],actors:[],volumes:[],lightFollowCamera:!0,numberOfPropsRendered:0,propArray:null,pathArray:null,layer:0,preserveColorBuffer:!1,preserveDepthBuffer:!1,computeVisiblePropBounds:Ws(),interactive:!0,nearClippingPlaneTolerance:0,clippingRangeExpansion:.05,erase:!0,draw:!0,useShadows:!1,useDepthPeeling:!1,occlusionRatio:0,maximumNumberOfPeels:4,selector:null,delegate:null,texturedBackground:!1,backgroundTexture:null,environmentTexture:null,environmentTextureDiffuseStrength:1,environmentTextureSpecularStrength:1,useEnvironmentTextureAsBackground:!1,pass:0};function R0(t,e,n={}){for(Object.assign(e,uE,n),C0.extend(t,e,n),e.background||(e.background=[0,0,0,1]);e.background.length<3;)e.background.push(0);e.background.length===3&&e.background.push(1),Oe(t,e,["_renderWindow","allocatedRenderTime","timeFactor","lastRenderTimeInSeconds","numberOfPropsRendered","lastRenderingUsedDepthPeeling","selector"]),ie(t,e,["twoSidedLighting","lightFollowCamera","automaticLightCreation","erase","draw","nearClippingPlaneTolerance","clippingRangeExpansion","backingStore","interactive","layer","preserveColorBuffer","preserveDepthBuffer","useDepthPeeling","occlusionRatio","maximumNumberOfPeels","delegate","backgroundTexture","texturedBackground","environmentTexture","environmentTextureDiffuseStrength","environmentTextureSpecularStrength","useEnvironmentTextureAsBackground","useShadows","pass"]),Bn(t,e,["actors","volumes","lights"]),ba(t,e,["background"],4,1),sn(t,e,["renderWindow"]),fE(t,e)}var lE=J(R0,"vtkRenderer"),M0={newInstance:lE,extend:R0};var gE="WebGL",fs=Object.create(null);function wa(t,e){fs[t]=e}function pE(){return Object.keys(fs)}function E0(t,e={}){return fs[t]&&fs[t](e)}function hE(t,e){e.classHierarchy.push("vtkRenderWindow"),t.addRenderer=n=>{t.hasRenderer(n)||(n.setRenderWindow(t),e.renderers.push(n),t.modified())},t.removeRenderer=n=>{e.renderers=e.renderers.filter(r=>r!==n),t.modified()},t.hasRenderer=n=>e.renderers.indexOf(n)!==-1,t.newAPISpecificView=(n,r={})=>E0(n||e.defaultViewAPI,r),t.addView=n=>{t.hasView(n)||(n.setRenderable(t),e._views.push(n),t.modified())},t.removeView=n=>{e._views=e._views.filter(r=>r!==n),t.modified()},t.hasView=n=>e._views.indexOf(n)!==-1,t.preRender=()=>{e.renderers.forEach(n=>{n.isActiveCameraCreated()||n.resetCamera()})},t.render=()=>{t.preRender(),e.interactor?e.interactor.render():e._views.forEach(n=>n.traverseAllPasses())},t.getStatistics=()=>{let n={propCount:0,invisiblePropCount:0,gpuMemoryMB:0};return e._views.forEach(r=>{r.getGraphicsMemoryInfo&&(n.gpuMemoryMB+=r.getGraphicsMemoryInfo()/1e6)}),e.renderers.forEach(r=>{let a=r.getViewProps(),i=e._views[0].getViewNodeFor(r);a.forEach(s=>{if(s.getVisibility()){n.propCount+=1;let o=s.getMapper&&s.getMapper();if(o&&o.getPrimitiveCount){let c=i.getViewNodeFor(o);if(c){c.getAllocatedGPUMemoryInBytes&&(n.gpuMemoryMB+=c.getAllocatedGPUMemoryInBytes()/1e6);let f=o.getPrimitiveCount();Object.keys(f).forEach(u=>{n[u]||(n[u]=0),n[u]+=f[u]})}}}else n.invisiblePropCount+=1})}),n.str=Object.keys(n).map(r=>`${r}: ${n[r]}`).join(`
`),n},t.captureImages=(n="image/png",r={})=>(O.setImmediate(t.render),e._views.map(a=>a.captureNextImage?a.captureNextImage(n,r):void 0).filter(a=>!!a)),t.addRenderWindow=n=>e.childRenderWindows.includes(n)?!1:(e.childRenderWindows.push(n),t.modified(),!0),t.removeRenderWindow=n=>{let r=e.childRenderWindows.findIndex(a=>a===n);return r<0?!1:(e.childRenderWindows.splice(r,1),t.modified(),!0)}}var vE={defaultViewAPI:gE,renderers:[],views:[],interactor:null,neverRendered:!0,numberOfLayers:1,childRenderWindows:[]};function D0(t,e,n={}){Object.assign(e,vE,n),O.obj(t,e),O.setGet(t,e,["interactor","numberOfLayers","_views","defaultViewAPI"]),O.get(t,e,["neverRendered"]),O.getArray(t,e,["renderers","childRenderWindows"]),O.moveToProtected(t,e,["views"]),O.event(t,e,"completion"),hE(t,e)}var dE=O.newInstance(D0,"vtkRenderWindow"),V0={newInstance:dE,extend:D0,registerViewConstructor:wa,listViewAPIs:pE,newAPISpecificView:E0};function TE(t,e){e.classHierarchy.push("vtkRenderPass"),t.getOperation=()=>e.currentOperation,t.setCurrentOperation=n=>{e.currentOperation=n,e.currentTraverseOperation=`traverse${O.capitalize(e.currentOperation)}`},t.getTraverseOperation=()=>e.currentTraverseOperation,t.getCaptureDelegateOutput=()=>!1,t.traverse=(n,r=null)=>{e.deleted||(e._currentParent=r,e.preDelegateOperations.forEach(a=>{t.setCurrentOperation(a),n.traverse(t)}),e.delegates.forEach(a=>{a.traverse(n,t)}),e.postDelegateOperations.forEach(a=>{t.setCurrentOperation(a),n.traverse(t)}))},t.releaseGraphicsResources=n=>{e.delegates.filter(r=>!r.isDeleted()).forEach(r=>r.releaseGraphicsResources?.(n))}}var xE={delegates:[],currentOperation:null,preDelegateOperations:[],postDelegateOperations:[],currentParent:null};function L0(t,e,n={}){Object.assign(e,xE,n),O.obj(t,e),O.get(t,e,["currentOperation"]),O.setGet(t,e,["delegates","_currentParent","preDelegateOperations","postDelegateOperations"]),O.moveToProtected(t,e,["currentParent"]),TE(t,e)}var yE=O.newInstance(L0,"vtkRenderPass"),Ze={newInstance:yE,extend:L0};var{Representation:mE}=_t,{vtkErrorMacro:_0}=O;function SE(t){t.Fragment=k.substitute(t.Fragment,"//VTK::RenderPassFragmentShader::Impl",`
      float weight = gl_FragData[0].a * pow(max(1.1 - gl_FragCoord.z, 0.0), 2.0);
      gl_FragData[0] = vec4(gl_FragData[0].rgb*weight, gl_FragData[0].a);
      gl_FragData[1].r = weight;
    `,!1).result}var CE=`//VTK::System::Dec

in vec2 tcoord;

uniform sampler2D translucentRTexture;
uniform sampler2D translucentRGBATexture;

// the output of this shader
//VTK::Output::Dec

void main()
{
  vec4 t1Color = texture(translucentRGBATexture, tcoord);
  float t2Color = texture(translucentRTexture, tcoord).r;
  gl_FragData[0] = vec4(t1Color.rgb/max(t2Color,0.01), 1.0 - t1Color.a);
}
`;function wE(t,e){e.classHierarchy.push("vtkOpenGLOrderIndependentTranslucentPass"),t.createVertexBuffer=()=>{let n=new Float32Array([-1,-1,-1,1,-1,-1,-1,1,-1,1,1,-1]),r=new Float32Array([0,0,1,0,0,1,1,1]),a=new Uint16Array([4,0,1,3,2]),i=Y.newInstance({numberOfComponents:3,values:n});i.setName("points");let s=Y.newInstance({numberOfComponents:2,values:r});s.setName("tcoords");let o=be.newInstance({values:a});e.tris.getCABO().createVBO(o,"polys",mE.SURFACE,{points:i,tcoords:s,cellOffset:0,forceFlatten:!0}),e.VBOBuildTime.modified()},t.createFramebuffer=n=>{let r=n.getSize(),a=n.getContext();e.framebuffer=xn.newInstance(),e.framebuffer.setOpenGLRenderWindow(n),e.framebuffer.create(...r),e.framebuffer.saveCurrentBindingsAndBuffers(),e.framebuffer.bind(),e.translucentRGBATexture=de.newInstance(),e.translucentRGBATexture.setInternalFormat(a.RGBA16F),e.translucentRGBATexture.setFormat(a.RGBA),e.translucentRGBATexture.setOpenGLDataType(a.HALF_FLOAT),e.translucentRGBATexture.setOpenGLRenderWindow(n),e.translucentRGBATexture.create2DFromRaw({width:r[0],height:r[1],numComps:4,dataType:"Float32Array",data:null}),e.translucentRTexture=de.newInstance(),e.translucentRTexture.setInternalFormat(a.R16F),e.translucentRTexture.setFormat(a.RED),e.translucentRTexture.setOpenGLDataType(a.HALF_FLOAT),e.translucentRTexture.setOpenGLRenderWindow(n),e.translucentRTexture.create2DFromRaw({width:r[0],height:r[1],numComps:1,dataType:"Float32Array",data:null}),e.translucentZTexture=de.newInstance(),e.translucentZTexture.setOpenGLRenderWindow(n),e.translucentZTexture.createDepthFromRaw({width:r[0],height:r[1],dataType:"Float32Array",data:null}),e.framebuffer.setColorBuffer(e.translucentRGBATexture,0),e.framebuffer.setColorBuffer(e.translucentRTexture,1),e.framebuffer.setDepthBuffer(e.translucentZTexture)},t.createCopyShader=n=>{e.copyShader=n.getShaderCache().readyShaderProgramArray(["//VTK::System::Dec","attribute vec4 vertexDC;","attribute vec2 tcoordTC;","varying vec2 tcoord;","void main() { tcoord = tcoordTC; gl_Position = vertexDC; }"].join(`
`),CE,"")},t.createVBO=n=>{let r=n.getContext();e.tris.setOpenGLRenderWindow(n),t.createVertexBuffer();let a=e.copyShader;e.tris.getCABO().bind(),e.copyVAO.addAttributeArray(a,e.tris.getCABO(),"vertexDC",e.tris.getCABO().getVertexOffset(),e.tris.getCABO().getStride(),r.FLOAT,3,r.FALSE)||_0("Error setting vertexDC in copy shader VAO."),e.copyVAO.addAttributeArray(a,e.tris.getCABO(),"tcoordTC",e.tris.getCABO().getTCoordOffset(),e.tris.getCABO().getStride(),r.FLOAT,2,r.FALSE)||_0("Error setting vertexDC in copy shader VAO.")},t.traverse=(n,r,a)=>{if(e.deleted)return;let i=n.getSize(),s=n.getContext();if(e._supported=!1,r.getSelector()||!s||!s.getExtension("EXT_color_buffer_half_float")&&!s.getExtension("EXT_color_buffer_float")){t.setCurrentOperation("translucentPass"),r.traverse(t);return}if(e._supported=!0,e.framebuffer===null)t.createFramebuffer(n);else{let u=e.framebuffer.getSize();u===null||u[0]!==i[0]||u[1]!==i[1]?(e.framebuffer.releaseGraphicsResources(),e.translucentRGBATexture.releaseGraphicsResources(n),e.translucentRTexture.releaseGraphicsResources(n),e.translucentZTexture.releaseGraphicsResources(n),t.createFramebuffer(n)):(e.framebuffer.saveCurrentBindingsAndBuffers(),e.framebuffer.bind())}s.drawBuffers([s.COLOR_ATTACHMENT0]),s.clearBufferfv(s.COLOR,0,[0,0,0,0]),s.clearBufferfv(s.DEPTH,0,[1]),s.colorMask(!1,!1,!1,!1),a.getOpaqueActorCount()>0&&(a.setCurrentOperation("opaqueZBufferPass"),r.traverse(a)),s.colorMask(!0,!0,!0,!0),s.drawBuffers([s.COLOR_ATTACHMENT0,s.COLOR_ATTACHMENT1]),s.viewport(0,0,i[0],i[1]),s.scissor(0,0,i[0],i[1]),s.clearBufferfv(s.COLOR,0,[0,0,0,1]),s.clearBufferfv(s.COLOR,1,[0,0,0,0]),s.enable(s.DEPTH_TEST),s.enable(s.BLEND),s.blendFuncSeparate(s.ONE,s.ONE,s.ZERO,s.ONE_MINUS_SRC_ALPHA),t.setCurrentOperation("translucentPass"),r.traverse(t),s.drawBuffers([s.NONE]),e.framebuffer.restorePreviousBindingsAndBuffers(),e.copyShader===null?t.createCopyShader(n):n.getShaderCache().readyShaderProgram(e.copyShader),e.copyVAO||(e.copyVAO=Er.newInstance(),e.copyVAO.setOpenGLRenderWindow(n)),e.copyVAO.bind(),e.VBOBuildTime.getMTime()<t.getMTime()&&t.createVBO(n);let o=s.isEnabled(s.CULL_FACE),c=o?s.getParameter(s.CULL_FACE_MODE):null;n.disableCullFace(),s.blendFuncSeparate(s.SRC_ALPHA,s.ONE_MINUS_SRC_ALPHA,s.ONE,s.ONE_MINUS_SRC_ALPHA),s.depthMask(!1),s.depthFunc(s.ALWAYS),s.viewport(0,0,i[0],i[1]),s.scissor(0,0,i[0],i[1]),e.translucentRGBATexture.activate(),e.copyShader.setUniformi("translucentRGBATexture",e.translucentRGBATexture.getTextureUnit()),e.translucentRTexture.activate(),e.copyShader.setUniformi("translucentRTexture",e.translucentRTexture.getTextureUnit()),s.drawArrays(s.TRIANGLES,0,e.tris.getCABO().getElementCount()),s.depthMask(!0),s.depthFunc(s.LEQUAL),o&&(n.enableCullFace(),n.setCullFaceMode(c)),e.translucentRGBATexture.deactivate(),e.translucentRTexture.deactivate();let f=r.getTiledSizeAndOrigin();s.scissor(f.lowerLeftU,f.lowerLeftV,f.usize,f.vsize),s.viewport(f.lowerLeftU,f.lowerLeftV,f.usize,f.vsize)},t.getShaderReplacement=()=>e._supported?SE:null,t.releaseGraphicsResources=O.chain(n=>{e.framebuffer&&(e.framebuffer.releaseGraphicsResources(n),e.framebuffer=null),e.translucentRGBATexture&&(e.translucentRGBATexture.releaseGraphicsResources(n),e.translucentRGBATexture=null),e.translucentRTexture&&(e.translucentRTexture.releaseGraphicsResources(n),e.translucentRTexture=null),e.translucentZTexture&&(e.translucentZTexture.releaseGraphicsResources(n),e.translucentZTexture=null),e.copyVAO&&(e.copyVAO.releaseGraphicsResources(n),e.copyVAO=null),e.copyShader=null,e.tris.releaseGraphicsResources(n),t.modified()},t.releaseGraphicsResources)}var OE={framebuffer:null,copyShader:null,tris:null};function F0(t,e,n={}){Object.assign(e,OE,n),Ze.extend(t,e,n),e.VBOBuildTime={},O.obj(e.VBOBuildTime,{mtime:0}),e.tris=Ye.newInstance(),O.get(t,e,["framebuffer"]),wE(t,e)}var RE=O.newInstance(F0,"vtkOpenGLOrderIndependentTranslucentPass"),N0={newInstance:RE,extend:F0};function ME(t,e){e.classHierarchy.push("vtkForwardPass"),t.traverse=(n,r=null)=>{if(e.deleted)return;e._currentParent=r,t.setCurrentOperation("buildPass"),n.traverse(t);let a=n.getRenderable().getNumberOfLayers(),i=n.getRenderable().getRenderersByReference();for(let s=0;s<a;s++)for(let o=0;o<i.length;o++){let c=i[o];if(c.getDraw()&&c.getLayer()===s){let f=n.getViewNodeFor(c);if(e.opaqueActorCount=0,e.translucentActorCount=0,e.volumeCount=0,e.overlayActorCount=0,t.setCurrentOperation("queryPass"),f.traverse(t),(e.opaqueActorCount>0||e.translucentActorCount>0)&&e.volumeCount>0||e.depthRequested){let u=n.getFramebufferSize();e.framebuffer===null&&(e.framebuffer=xn.newInstance()),e.framebuffer.setOpenGLRenderWindow(n),e.framebuffer.saveCurrentBindingsAndBuffers();let g=e.framebuffer.getSize();(g===null||g[0]!==u[0]||g[1]!==u[1])&&(e.framebuffer.create(u[0],u[1]),e.framebuffer.populateFramebuffer()),e.framebuffer.bind(),t.setCurrentOperation("zBufferPass"),f.traverse(t),e.framebuffer.restorePreviousBindingsAndBuffers(),e.depthRequested=!1}t.setCurrentOperation("cameraPass"),f.traverse(t),e.opaqueActorCount>0&&(t.setCurrentOperation("opaquePass"),f.traverse(t)),e.translucentActorCount>0&&(e.translucentPass||(e.translucentPass=N0.newInstance()),e.translucentPass.traverse(n,f,t)),e.volumeCount>0&&(t.setCurrentOperation("volumePass"),f.traverse(t)),e.overlayActorCount>0&&(t.setCurrentOperation("overlayPass"),f.traverse(t))}}},t.releaseGraphicsResources=O.chain(n=>{e.framebuffer&&(e.framebuffer.releaseGraphicsResources(),e.framebuffer=null),e.translucentPass?.releaseGraphicsResources(n)},t.releaseGraphicsResources),t.getZBufferTexture=()=>e.framebuffer?e.framebuffer.getColorTexture():null,t.requestDepth=()=>{e.depthRequested=!0},t.incrementOpaqueActorCount=()=>e.opaqueActorCount++,t.incrementTranslucentActorCount=()=>e.translucentActorCount++,t.incrementVolumeCount=()=>e.volumeCount++,t.incrementOverlayActorCount=()=>e.overlayActorCount++}var EE={opaqueActorCount:0,translucentActorCount:0,volumeCount:0,overlayActorCount:0,framebuffer:null,depthRequested:!1};function B0(t,e,n={}){Object.assign(e,EE,n),Ze.extend(t,e,n),O.get(t,e,["framebuffer","opaqueActorCount","translucentActorCount","volumeCount"]),ME(t,e)}var DE=O.newInstance(B0,"vtkForwardPass"),G0={newInstance:DE,extend:B0};var VE={GLOBALIDS:0,PEDIGREEIDS:1,VALUES:2,INDICES:3,FRUSTUM:4,LOCATIONS:5,THRESHOLDS:6,BLOCKS:7,QUERY:8},LE={CELL:0,POINT:1,FIELD:2,VERTEX:3,EDGE:4,ROW:5},U0={SelectionContent:VE,SelectionField:LE};function _E(t,e){e.classHierarchy.push("vtkSelectionNode"),t.getBounds=()=>e.points.getBounds()}var FE={contentType:-1,fieldType:-1,properties:null,selectionList:[]};function k0(t,e,n={}){Object.assign(e,FE,n),O.obj(t,e),e.properties={},O.setGet(t,e,["contentType","fieldType","properties","selectionList"]),_E(t,e)}var NE=O.newInstance(k0,"vtkSelectionNode"),Ur={newInstance:NE,extend:k0,...U0};var{FieldAssociations:BE}=it;function GE(t,e){e.classHierarchy.push("vtkHardwareSelector"),t.getSourceDataAsync=async(n,r,a,i,s)=>{},t.selectAsync=async(n,r,a,i,s)=>{let o=await t.getSourceDataAsync(n,r,a,i,s);return o?o.generateSelection(r,a,i,s):[]}}var UE={fieldAssociation:BE.FIELD_ASSOCIATION_CELLS,captureZValues:!1};function b0(t,e,n={}){Object.assign(e,UE,n),O.obj(t,e),O.setGet(t,e,["fieldAssociation","captureZValues"]),GE(t,e)}var kE=O.newInstance(b0,"vtkHardwareSelector"),us={newInstance:kE,extend:b0};var{PassTypes:Ge}=Bo,{SelectionContent:bE,SelectionField:z0}=Ur,{FieldAssociations:Ra}=it,{vtkErrorMacro:W0,vtkDebugMacro:Oa}=O,wn=1;function A0(t){return`${t.propID} ${t.compositeID}`}function P0(t,e,n,r){return n?n[(e*(r[2]-r[0]+1)+t)*4+3]:0}function rn(t,e,n,r,a=null){if(!n)return 0;let i=(e*(r[2]-r[0]+1)+t)*4,s=n[i],o=n[i+1];return(n[i+2]*256+o)*256+s}function H0(t,e){let n=e;return n<<=24,n|=t,n}function kr(t,e,n,r){let a=n<0?0:n;if(a===0){if(r[0]=e[0],r[1]=e[1],e[0]<t.area[0]||e[0]>t.area[2]||e[1]<t.area[1]||e[1]>t.area[3])return null;let c=[e[0]-t.area[0],e[1]-t.area[1]],f=rn(c[0],c[1],t.pixBuffer[Ge.ACTOR_PASS],t.area,"getPixelInformationWithData1");if(f<=0||f-wn>=t.props.length)return null;let u={};u.valid=!0,u.propID=f-wn,u.prop=t.props[u.propID];let g=rn(c[0],c[1],t.pixBuffer[Ge.COMPOSITE_INDEX_PASS],t.area,"getPixelInformationWithData2");if((g<0||g>16777215)&&(g=0),u.compositeID=g-wn,t.captureZValues){let l=(c[1]*(t.area[2]-t.area[0]+1)+c[0])*4;u.zValue=(256*t.zBuffer[l]+t.zBuffer[l+1])/65535,u.displayPosition=e}return t.pixBuffer[Ge.ID_LOW24]&&P0(c[0],c[1],t.pixBuffer[Ge.ID_LOW24],t.area)===0||(u.attributeID=H0(rn(c[0],c[1],t.pixBuffer[Ge.ID_LOW24],t.area,"getPixelInformationWithData3"),rn(c[0],c[1],t.pixBuffer[Ge.ID_HIGH24],t.area,"getPixelInformationWithData4"),0)),u}let i=[e[0],e[1]],s=[0,0],o=kr(t,e,0,r);if(o&&o.valid)return o;for(let c=1;c<a;++c){for(let f=i[1]>c?i[1]-c:0;f<=i[1]+c;++f)if(s[1]=f,i[0]>=c&&(s[0]=i[0]-c,o=kr(t,s,0,r),o&&o.valid)||(s[0]=i[0]+c,o=kr(t,s,0,r),o&&o.valid))return o;for(let f=i[0]>=c?i[0]-(c-1):0;f<=i[0]+(c-1);++f)if(s[0]=f,i[1]>=c&&(s[1]=i[1]-c,o=kr(t,s,0,r),o&&o.valid)||(s[1]=i[1]+c,o=kr(t,s,0,r),o&&o.valid))return o}return r[0]=e[0],r[1]=e[1],null}function I0(t,e,n,r,a){let i=[],s=0;return e.forEach((o,c)=>{let f=Ur.newInstance();switch(f.setContentType(bE.INDICES),t){case Ra.FIELD_ASSOCIATION_CELLS:f.setFieldType(z0.CELL);break;case Ra.FIELD_ASSOCIATION_POINTS:f.setFieldType(z0.POINT);break;default:W0("Unknown field association")}f.getProperties().propID=o.info.propID,f.getProperties().prop=o.info.prop,f.getProperties().compositeID=o.info.compositeID,f.getProperties().attributeID=o.info.attributeID,f.getProperties().pixelCount=o.pixelCount,n&&(f.getProperties().displayPosition=[o.info.displayPosition[0],o.info.displayPosition[1],o.info.zValue],f.getProperties().worldPosition=a.displayToWorld(o.info.displayPosition[0],o.info.displayPosition[1],o.info.zValue,r)),f.setSelectionList(o.attributeIDs),i[s]=f,s++}),i}function zE(t,e,n,r,a){let i=Math.floor(e),s=Math.floor(n),o=Math.floor(r),c=Math.floor(a),f=new Map,u=[0,0];for(let g=s;g<=c;g++)for(let l=i;l<=o;l++){let h=kr(t,[l,g],0,u);if(h&&h.valid){let y=A0(h);if(!f.has(y))f.set(y,{info:h,pixelCount:1,attributeIDs:[h.attributeID]});else{let p=f.get(y);p.pixelCount++,t.captureZValues&&h.zValue<p.info.zValue&&(p.info=h),p.attributeIDs.indexOf(h.attributeID)===-1&&p.attributeIDs.push(h.attributeID)}}}return I0(t.fieldAssociation,f,t.captureZValues,t.renderer,t.openGLRenderWindow)}function WE(t,e){e.classHierarchy.push("vtkOpenGLHardwareSelector"),t.releasePixBuffers=()=>{e.rawPixBuffer=[],e.pixBuffer=[],e.zBuffer=null},t.releaseGraphicsResources=()=>{t.releasePixBuffers(),e.framebuffer?.delete(),e.framebuffer=null},t.beginSelection=()=>{e._openGLRenderer=e._openGLRenderWindow.getViewNodeFor(e._renderer,e._openGLRenderer),e.maxAttributeId=0;let r=e._openGLRenderWindow.getSize();if(!e.framebuffer)e.framebuffer=xn.newInstance(),e.framebuffer.setOpenGLRenderWindow(e._openGLRenderWindow),e.framebuffer.saveCurrentBindingsAndBuffers(),e.framebuffer.create(r[0],r[1]),e.framebuffer.populateFramebuffer();else{e.framebuffer.setOpenGLRenderWindow(e._openGLRenderWindow),e.framebuffer.saveCurrentBindingsAndBuffers();let a=e.framebuffer.getSize();!a||a[0]!==r[0]||a[1]!==r[1]?(e.framebuffer.create(r[0],r[1]),e.framebuffer.populateFramebuffer()):e.framebuffer.bind()}if(e._openGLRenderer.clear(),e._openGLRenderer.setSelector(t),e.hitProps={},e.propPixels={},e.props=[],t.releasePixBuffers(),e.fieldAssociation===Ra.FIELD_ASSOCIATION_POINTS){let a=e._openGLRenderWindow.getContext(),i=a.isEnabled(a.BLEND);a.disable(a.BLEND),e._openGLRenderWindow.traverseAllPasses(),i&&a.enable(a.BLEND)}},t.endSelection=()=>{e.hitProps={},e._openGLRenderer.setSelector(null),e.framebuffer.restorePreviousBindingsAndBuffers()},t.preCapturePass=()=>{let r=e._openGLRenderWindow.getContext();e.originalBlending=r.isEnabled(r.BLEND),r.disable(r.BLEND)},t.postCapturePass=()=>{let r=e._openGLRenderWindow.getContext();e.originalBlending&&r.enable(r.BLEND)},t.select=()=>{let r=null;return t.captureBuffers()&&(r=t.generateSelection(e.area[0],e.area[1],e.area[2],e.area[3]),t.releasePixBuffers()),r},t.getSourceDataAsync=async(r,a,i,s,o)=>{if(e._renderer=r,a===void 0){let f=e._openGLRenderWindow.getSize();t.setArea(0,0,f[0]-1,f[1]-1)}else t.setArea(a,i,s,o);if(!t.captureBuffers())return!1;let c={area:[...e.area],pixBuffer:[...e.pixBuffer],captureZValues:e.captureZValues,zBuffer:e.zBuffer,props:[...e.props],fieldAssociation:e.fieldAssociation,renderer:r,openGLRenderWindow:e._openGLRenderWindow};return c.generateSelection=(...f)=>zE(c,...f),c},t.captureBuffers=()=>{if(!e._renderer||!e._openGLRenderWindow)return W0("Renderer and view must be set before calling Select."),!1;e._openGLRenderer=e._openGLRenderWindow.getViewNodeFor(e._renderer,e._openGLRenderer),e._openGLRenderWindow.getRenderable().preRender(),t.invokeEvent({type:"StartEvent"}),e.originalBackground=e._renderer.getBackgroundByReference(),e._renderer.setBackground(0,0,0,0);let r=e._openGLRenderWindow.getRenderPasses();t.beginSelection();let a=[];for(e.currentPass=Ge.MIN_KNOWN_PASS;e.currentPass<=Ge.MAX_KNOWN_PASS;e.currentPass++)t.passRequired(e.currentPass)&&(t.preCapturePass(e.currentPass),e.captureZValues&&e.currentPass===Ge.ACTOR_PASS&&typeof r[0].requestDepth=="function"&&typeof r[0].getFramebuffer=="function"&&r[0].requestDepth(),e._openGLRenderWindow.traverseAllPasses(),t.postCapturePass(e.currentPass),t.savePixelBuffer(e.currentPass),a.push(e.currentPass));return a.forEach(i=>{e.currentPass=i,t.processPixelBuffers()}),e.currentPass=Ge.MAX_KNOWN_PASS,t.endSelection(),e._renderer.setBackground(e.originalBackground),t.invokeEvent({type:"EndEvent"}),!0},t.processPixelBuffers=()=>{e.props.forEach((r,a)=>{t.isPropHit(a)&&r.processSelectorPixelBuffers(t,e.propPixels[a])})},t.passRequired=r=>{if(r===Ge.ID_HIGH24){if(e.fieldAssociation===Ra.FIELD_ASSOCIATION_POINTS)return e.maximumPointId>16777215;if(e.fieldAssociation===Ra.FIELD_ASSOCIATION_CELLS)return e.maximumCellId>16777215}return!0},t.savePixelBuffer=r=>{if(e.pixBuffer[r]=e._openGLRenderWindow.getPixelData(e.area[0],e.area[1],e.area[2],e.area[3]),!e.rawPixBuffer[r]){let a=(e.area[2]-e.area[0]+1)*(e.area[3]-e.area[1]+1)*4;e.rawPixBuffer[r]=new Uint8Array(a),e.rawPixBuffer[r].set(e.pixBuffer[r])}if(r===Ge.ACTOR_PASS){if(e.captureZValues){let a=e._openGLRenderWindow.getRenderPasses();if(typeof a[0].requestDepth=="function"&&typeof a[0].getFramebuffer=="function"){let i=a[0].getFramebuffer();i.saveCurrentBindingsAndBuffers(),i.bind(),e.zBuffer=e._openGLRenderWindow.getPixelData(e.area[0],e.area[1],e.area[2],e.area[3]),i.restorePreviousBindingsAndBuffers()}}t.buildPropHitList(e.rawPixBuffer[r])}},t.buildPropHitList=r=>{let a=0;for(let i=0;i<=e.area[3]-e.area[1];i++)for(let s=0;s<=e.area[2]-e.area[0];s++){let o=rn(s,i,r,e.area,"buildPropHitList");o>0&&(o--,o in e.hitProps||(e.hitProps[o]=!0,e.propPixels[o]=[]),e.propPixels[o].push(a*4)),++a}},t.renderProp=r=>{e.currentPass===Ge.ACTOR_PASS&&(t.setPropColorValueFromInt(e.props.length+wn),e.props.push(r))},t.renderCompositeIndex=r=>{e.currentPass===Ge.COMPOSITE_INDEX_PASS&&t.setPropColorValueFromInt(r+wn)},t.renderAttributeId=r=>{r<0||(e.maxAttributeId=r>e.maxAttributeId?r:e.maxAttributeId)},t.passTypeToString=r=>O.enumToString(Ge,r),t.isPropHit=r=>!!e.hitProps[r],t.setPropColorValueFromInt=r=>{e.propColorValue[0]=r%256/255,e.propColorValue[1]=Math.floor(r/256)%256/255,e.propColorValue[2]=Math.floor(r/65536)%256/255},t.delete=O.chain(t.releaseGraphicsResources,t.delete),t.getPixelInformation=(r,a,i)=>{let s=a<0?0:a;if(Oa("getPixelInformation called",s),s===0){if(i[0]=r[0],i[1]=r[1],r[0]<e.area[0]||r[0]>e.area[2]||r[1]<e.area[1]||r[1]>e.area[3])return null;Oa(r),Oa(e.area);let u=[r[0]-e.area[0],r[1]-e.area[1]];Oa("adjusted displayPosition",u);let g=rn(u[0],u[1],e.pixBuffer[Ge.ACTOR_PASS],e.area,"getPixelInformation");if(Oa("actorid",g),g<=0||g-wn>=e.props.length)return null;let l={};l.valid=!0,l.propID=g-wn,l.prop=e.props[l.propID];let h=rn(u[0],u[1],e.pixBuffer[Ge.COMPOSITE_INDEX_PASS],e.area,"getPixelInformation2");if((h<0||h>16777215)&&(h=0),l.compositeID=h-wn,e.captureZValues){let y=(u[1]*(e.area[2]-e.area[0]+1)+u[0])*4;l.zValue=(256*e.zBuffer[y]+e.zBuffer[y+1])/65535,l.displayPosition=r}return e.pixBuffer[Ge.ID_LOW24]&&P0(u[0],u[1],e.pixBuffer[Ge.ID_LOW24],e.area)===0||(l.attributeID=H0(rn(u[0],u[1],e.pixBuffer[Ge.ID_LOW24],e.area,"getPixelInformation3"),rn(u[0],u[1],e.pixBuffer[Ge.ID_HIGH24],e.area,"getPixelInformation4"))),l}let o=[r[0],r[1]],c=[0,0],f=t.getPixelInformation(r,0,i);if(f&&f.valid)return f;for(let u=1;u<s;++u){for(let g=o[1]>u?o[1]-u:0;g<=o[1]+u;++g)if(c[1]=g,o[0]>=u&&(c[0]=o[0]-u,f=t.getPixelInformation(c,0,i),f&&f.valid)||(c[0]=o[0]+u,f=t.getPixelInformation(c,0,i),f&&f.valid))return f;for(let g=o[0]>=u?o[0]-(u-1):0;g<=o[0]+(u-1);++g)if(c[0]=g,o[1]>=u&&(c[1]=o[1]-u,f=t.getPixelInformation(c,0,i),f&&f.valid)||(c[1]=o[1]+u,f=t.getPixelInformation(c,0,i),f&&f.valid))return f}return i[0]=r[0],i[1]=r[1],null},t.generateSelection=(r,a,i,s)=>{let o=Math.floor(r),c=Math.floor(a),f=Math.floor(i),u=Math.floor(s),g=new Map,l=[0,0];for(let h=c;h<=u;h++)for(let y=o;y<=f;y++){let p=[y,h],v=t.getPixelInformation(p,0,l);if(v&&v.valid){let x=A0(v);if(!g.has(x))g.set(x,{info:v,pixelCount:1,attributeIDs:[v.attributeID]});else{let S=g.get(x);S.pixelCount++,e.captureZValues&&v.zValue<S.info.zValue&&(S.info=v),S.attributeIDs.indexOf(v.attributeID)===-1&&S.attributeIDs.push(v.attributeID)}}}return I0(e.fieldAssociation,g,e.captureZValues,e._renderer,e._openGLRenderWindow)},t.getRawPixelBuffer=r=>e.rawPixBuffer[r],t.getPixelBuffer=r=>e.pixBuffer[r],t.attach=(r,a)=>{e._openGLRenderWindow=r,e._renderer=a};let n=t.setArea;t.setArea=(...r)=>n(...r)?(e.area[0]=Math.floor(e.area[0]),e.area[1]=Math.floor(e.area[1]),e.area[2]=Math.floor(e.area[2]),e.area[3]=Math.floor(e.area[3]),!0):!1}var AE={area:void 0,currentPass:-1,propColorValue:null,props:null,maximumPointId:0,maximumCellId:0,idOffset:1};function j0(t,e,n={}){Object.assign(e,AE,n),us.extend(t,e,n),e.propColorValue=[0,0,0],e.props=[],e.area||(e.area=[0,0,0,0]),O.setGetArray(t,e,["area"],4),O.setGet(t,e,["_renderer","currentPass","_openGLRenderWindow","maximumPointId","maximumCellId"]),O.setGetArray(t,e,["propColorValue"],3),O.moveToProtected(t,e,["renderer","openGLRenderWindow"]),O.event(t,e,"event"),WE(t,e)}var PE=O.newInstance(j0,"vtkOpenGLHardwareSelector"),Vc={newInstance:PE,extend:j0,...Bo};var Y0=Hr(X0(),1),HE=["lastShaderProgramBound","context","_openGLRenderWindow"];function IE(t,e){e.classHierarchy.push("vtkShaderCache"),t.replaceShaderValues=(n,r,a)=>{let i=r;a.length>0&&(i=k.substitute(i,"VSOut","GSOut").result);let s=`#version 300 es
#define attribute in
#define textureCube texture
#define texture2D texture
#define textureCubeLod textureLod
#define texture2DLod textureLod
`;i=k.substitute(i,"//VTK::System::Dec",[`${s}
`,"#ifdef GL_FRAGMENT_PRECISION_HIGH","precision highp float;","precision highp int;","#else","precision mediump float;","precision mediump int;","#endif"]).result;let o=k.substitute(n,"//VTK::System::Dec",[`${s}
`,"#ifdef GL_FRAGMENT_PRECISION_HIGH","precision highp float;","precision highp int;","#else","precision mediump float;","precision mediump int;","#endif"]).result;o=k.substitute(o,"varying","out").result,i=k.substitute(i,"varying","in").result;let c="",f=0;for(;i.includes(`gl_FragData[${f}]`);)i=k.substitute(i,`gl_FragData\\[${f}\\]`,`fragOutput${f}`).result,c+=`layout(location = ${f}) out vec4 fragOutput${f};
`,f++;i=k.substitute(i,"//VTK::Output::Dec",c).result;let u=k.substitute(a,"//VTK::System::Dec",s).result;return{VSSource:o,FSSource:i,GSSource:u}},t.readyShaderProgramArray=(n,r,a)=>{let i=t.replaceShaderValues(n,r,a),s=t.getShaderProgram(i.VSSource,i.FSSource,i.GSSource);return t.readyShaderProgram(s)},t.readyShaderProgram=n=>!n||!n.getCompiled()&&!n.compileShader()||!t.bindShaderProgram(n)?null:n,t.getShaderProgram=(n,r,a)=>{let i=`${n}${r}${a}`,s=Y0.default.hash(i);if(!(s in e.shaderPrograms)){let o=k.newInstance();return o.setContext(e.context),o.getVertexShader().setSource(n),o.getFragmentShader().setSource(r),a&&o.getGeometryShader().setSource(a),o.setMd5Hash(s),e.shaderPrograms[s]=o,o}return e.shaderPrograms[s]},t.releaseGraphicsResources=n=>{t.releaseCurrentShaderProgram(),Object.keys(e.shaderPrograms).map(r=>e.shaderPrograms[r]).forEach(r=>r.cleanup()),e.shaderPrograms={}},t.releaseCurrentShaderProgram=()=>{e.lastShaderProgramBound&&(e.lastShaderProgramBound.cleanup(),e.lastShaderProgramBound=null)},t.bindShaderProgram=n=>(e.lastShaderProgramBound===n||(e.lastShaderProgramBound&&e.lastShaderProgramBound.release(),n.bind(),e.lastShaderProgramBound=n),1)}var jE={lastShaderProgramBound:null,shaderPrograms:null,context:null};function q0(t,e,n={}){Object.assign(e,jE,n),e.shaderPrograms={},O.obj(t,e),O.setGet(t,e,HE),O.moveToProtected(t,e,["openGLRenderWindow"]),IE(t,e)}var $E=O.newInstance(q0,"vtkShaderCache"),Z0={newInstance:$E,extend:q0};var{vtkErrorMacro:KE}=O;function XE(t,e){e.classHierarchy.push("vtkOpenGLTextureUnitManager"),t.deleteTable=()=>{for(let n=0;n<e.numberOfTextureUnits;++n)e.textureUnits[n]===!0&&KE("some texture units  were not properly released");e.textureUnits=[],e.numberOfTextureUnits=0},t.setContext=n=>{if(e.context!==n){if(e.context!==0&&t.deleteTable(),e.context=n,e.context){e.numberOfTextureUnits=n.getParameter(n.MAX_TEXTURE_IMAGE_UNITS);for(let r=0;r<e.numberOfTextureUnits;++r)e.textureUnits[r]=!1}t.modified()}},t.allocate=()=>{for(let n=0;n<e.numberOfTextureUnits;n++)if(!t.isAllocated(n))return e.textureUnits[n]=!0,n;return-1},t.allocateUnit=n=>t.isAllocated(n)?-1:(e.textureUnits[n]=!0,n),t.isAllocated=n=>e.textureUnits[n],t.free=n=>{e.textureUnits[n]=!1},t.freeAll=()=>{for(let n=0;n<e.numberOfTextureUnits;++n)e.textureUnits[n]=!1}}var YE={context:null,numberOfTextureUnits:0,textureUnits:0};function Q0(t,e,n={}){Object.assign(e,YE,n),O.obj(t,e),e.textureUnits=[],O.get(t,e,["numberOfTextureUnits"]),O.setGet(t,e,["context"]),XE(t,e)}var qE=O.newInstance(Q0,"vtkOpenGLTextureUnitManager"),J0={newInstance:qE,extend:Q0};function ZE(t,e){e.classHierarchy.push("vtkRenderWindowViewNode"),t.getViewNodeFactory=()=>null,t.getAspectRatio=()=>e.size[0]/e.size[1],t.getAspectRatioForRenderer=n=>{let r=n.getViewportByReference();return e.size[0]*(r[2]-r[0])/((r[3]-r[1])*e.size[1])},t.isInViewport=(n,r,a)=>{let i=a.getViewportByReference(),s=t.getFramebufferSize();return i[0]*s[0]<=n&&i[2]*s[0]>=n&&i[1]*s[1]<=r&&i[3]*s[1]>=r},t.getViewportSize=n=>{let r=n.getViewportByReference(),a=t.getFramebufferSize();return[(r[2]-r[0])*a[0],(r[3]-r[1])*a[1]]},t.getViewportCenter=n=>{let r=t.getViewportSize(n);return[r[0]*.5,r[1]*.5]},t.displayToNormalizedDisplay=(n,r,a)=>{let i=t.getFramebufferSize();return[n/i[0],r/i[1],a]},t.normalizedDisplayToDisplay=(n,r,a)=>{let i=t.getFramebufferSize();return[n*i[0],r*i[1],a]},t.worldToView=(n,r,a,i)=>i.worldToView(n,r,a),t.viewToWorld=(n,r,a,i)=>i.viewToWorld(n,r,a),t.worldToDisplay=(n,r,a,i)=>{let s=i.worldToView(n,r,a),o=t.getViewportSize(i),c=i.viewToProjection(s[0],s[1],s[2],o[0]/o[1]),f=i.projectionToNormalizedDisplay(c[0],c[1],c[2]);return t.normalizedDisplayToDisplay(f[0],f[1],f[2])},t.displayToWorld=(n,r,a,i)=>{let s=t.displayToNormalizedDisplay(n,r,a),o=i.normalizedDisplayToProjection(s[0],s[1],s[2]),c=t.getViewportSize(i),f=i.projectionToView(o[0],o[1],o[2],c[0]/c[1]);return i.viewToWorld(f[0],f[1],f[2])},t.normalizedDisplayToViewport=(n,r,a,i)=>{let s=i.getViewportByReference();s=t.normalizedDisplayToDisplay(s[0],s[1],0);let o=t.normalizedDisplayToDisplay(n,r,a);return[o[0]-s[0]-.5,o[1]-s[1]-.5,a]},t.viewportToNormalizedViewport=(n,r,a,i)=>{let s=t.getViewportSize(i);return s&&s[0]!==0&&s[1]!==0?[n/(s[0]-1),r/(s[1]-1),a]:[n,r,a]},t.normalizedViewportToViewport=(n,r,a,i)=>{let s=t.getViewportSize(i);return[n*(s[0]-1),r*(s[1]-1),a]},t.displayToLocalDisplay=(n,r,a)=>[n,t.getFramebufferSize()[1]-r-1,a],t.viewportToNormalizedDisplay=(n,r,a,i)=>{let s=i.getViewportByReference();s=t.normalizedDisplayToDisplay(s[0],s[1],0);let o=n+s[0]+.5,c=r+s[1]+.5;return t.displayToNormalizedDisplay(o,c,a)},t.getComputedDevicePixelRatio=()=>e.size[0]/t.getContainerSize()[0],t.getContainerSize=()=>{O.vtkErrorMacro("not implemented")},t.getPixelData=(n,r,a,i)=>{O.vtkErrorMacro("not implemented")},t.createSelector=()=>{O.vtkErrorMacro("not implemented")}}var QE={size:void 0,selector:void 0};function ev(t,e,n={}){Object.assign(e,QE,n),e.size||(e.size=[300,300]),O.getArray(t,e,["size"],2),O.get(t,e,["selector"]),ue.extend(t,e,n),ZE(t,e)}var JE=O.newInstance(ev,"vtkRenderWindowViewNode"),ls={newInstance:JE,extend:ev};function tv(){let t=new Map,e={apply(a,i,s){return t.has(s[0])?t.get(s[0]):a.apply(i,s)}};function n(a){return{apply(i,s,o){return t.set(a,o[0]),i.apply(s,o)}}}let r=Object.create(null);return r.getParameter=(a,i,s,o)=>new Proxy(o.bind(a),e),r.depthMask=(a,i,s,o)=>new Proxy(o.bind(a),n(a.DEPTH_WRITEMASK)),{get(a,i,s){if(i==="__getUnderlyingContext")return()=>a;let o=Reflect.get(a,i,a);o instanceof Function&&(o=o.bind(a));let c=r[i];return c?c(a,i,s,o):o}}}var{vtkDebugMacro:eD,vtkErrorMacro:Lc,vtkWarningMacro:tD}=O,nD={position:"absolute",top:0,left:0,width:"100%",height:"100%"},rD=["activateTexture","deactivateTexture","disableCullFace","enableCullFace","setCullFaceMode","get3DContext","getActiveFramebuffer","getContext","getDefaultTextureByteSize","getDefaultTextureInternalFormat","getGLInformations","getGraphicsMemoryInfo","getGraphicsResourceForObject","getHardwareMaximumLineWidth","getPixelData","getShaderCache","getTextureUnitForTexture","getTextureUnitManager","makeCurrent","releaseGraphicsResources","registerGraphicsResourceUser","unregisterGraphicsResourceUser","restoreContext","setActiveFramebuffer","setContext","setGraphicsResourceForObject"];function At(t,e,n,r){let a=t.getParameter(t.TEXTURE_BINDING_2D),i=t.getParameter(t.FRAMEBUFFER_BINDING),s=t.createFramebuffer(),o=t.createTexture();t.bindTexture(t.TEXTURE_2D,o),t.texImage2D(t.TEXTURE_2D,0,e,2,2,0,n,r,null),t.bindFramebuffer(t.FRAMEBUFFER,s),t.framebufferTexture2D(t.FRAMEBUFFER,t.COLOR_ATTACHMENT0,t.TEXTURE_2D,o,0);let c=t.checkFramebufferStatus(t.FRAMEBUFFER);return t.bindFramebuffer(t.FRAMEBUFFER,i),t.bindTexture(t.TEXTURE_2D,a),t.deleteFramebuffer(s),t.deleteTexture(o),c===t.FRAMEBUFFER_COMPLETE}var gs=0,rv=[];function aD(){gs++,rv.forEach(t=>t(gs))}function iD(){gs--,rv.forEach(t=>t(gs))}function nv(t){t.preventDefault()}function sD(t,e){e.classHierarchy.push("vtkOpenGLRenderWindow");let n;function r(){return n||(n=tv()),n}t.getViewNodeFactory=()=>e.myFactory,e.manageCanvas&&(e.canvas.addEventListener("webglcontextlost",nv,!1),e.canvas.addEventListener("webglcontextrestored",t.restoreContext,!1));let a=[0,0];function i(){e.renderable&&e.manageCanvas&&(e.size[0]!==a[0]||e.size[1]!==a[1])&&(a[0]=e.size[0],a[1]=e.size[1],e.canvas.setAttribute("width",e.size[0]),e.canvas.setAttribute("height",e.size[1])),e.viewStream&&e.viewStream.setSize(e.size[0],e.size[1]),e.manageCanvas&&(e.canvas.style.display=e.useOffScreen?"none":"block"),e.el&&(e.el.style.cursor=e.cursorVisibility?e.cursor:"none"),e.containerSize=null}t.onModified(i),t.buildPass=p=>{if(p){if(!e.renderable)return;t.prepareNodes(),t.addMissingNodes(e.renderable.getRenderersByReference()),t.addMissingNodes(e.renderable.getChildRenderWindowsByReference()),t.removeUnusedNodes(),t.initialize(),e.children.forEach(v=>{v.setOpenGLRenderWindow?.(t)})}},t.initialize=()=>{if(!e.initialized){if(e.rootOpenGLRenderWindow=t.getLastAncestorOfType("vtkOpenGLRenderWindow"),e.rootOpenGLRenderWindow)e.context2D=t.get2DContext();else{e.context=t.get3DContext(),t.resizeFromChildRenderWindows(),e.context&&aD(),e.textureUnitManager=J0.newInstance(),e.textureUnitManager.setContext(e.context),e.shaderCache.setContext(e.context);let p=e.context;p.blendFuncSeparate(p.SRC_ALPHA,p.ONE_MINUS_SRC_ALPHA,p.ONE,p.ONE_MINUS_SRC_ALPHA),p.depthFunc(p.LEQUAL),p.enable(p.BLEND)}e.initialized=!0}},t.makeCurrent=()=>{e.context.makeCurrent()},t.setContainer=p=>{e.el&&e.el!==p&&(e.canvas.parentNode!==e.el&&Lc("Error: canvas parent node does not match container"),e.el.removeChild(e.canvas),e.el.contains(e.bgImage)&&e.el.removeChild(e.bgImage)),e.el!==p&&(e.el=p,e.el&&(e.el.appendChild(e.canvas),e.useBackgroundImage&&e.el.appendChild(e.bgImage)),t.modified())},t.getContainer=()=>e.el,t.getContainerSize=()=>{if(!e.containerSize&&e.el){let{width:p,height:v}=e.el.getBoundingClientRect();e.containerSize=[p,v]}return e.containerSize||e.size},t.getFramebufferSize=()=>e.activeFramebuffer?.getSize()||e.size,t.getPixelData=(p,v,x,S)=>{let T=new Uint8Array((x-p+1)*(S-v+1)*4);return e.context.readPixels(p,v,x-p+1,S-v+1,e.context.RGBA,e.context.UNSIGNED_BYTE,T),T},t.get3DContext=(p={preserveDrawingBuffer:!1,depth:!0,alpha:!0,powerPreference:"high-performance"})=>{let v=typeof WebGL2RenderingContext<"u"?e.canvas.getContext("webgl2",p):null;return v&&eD("using WebGL2"),v||Lc("no WebGL2 context"),new Proxy(v,r())},t.get2DContext=(p={})=>e.canvas.getContext("2d",p),t.restoreContext=()=>{let p=Ze.newInstance();p.setCurrentOperation("Release"),p.traverse(t,null)},t.activateTexture=p=>{let v=e._textureResourceIds.get(p);if(v!==void 0){e.context.activeTexture(e.context.TEXTURE0+v);return}let x=t.getTextureUnitManager().allocate();if(x<0){Lc("Hardware does not support the number of textures defined.");return}e._textureResourceIds.set(p,x),e.context.activeTexture(e.context.TEXTURE0+x)},t.deactivateTexture=p=>{let v=e._textureResourceIds.get(p);v!==void 0&&(t.getTextureUnitManager().free(v),e._textureResourceIds.delete(p))},t.getTextureUnitForTexture=p=>{let v=e._textureResourceIds.get(p);return v!==void 0?v:-1},t.getDefaultTextureByteSize=(p,v=null,x=!1)=>{switch(p){case ee.CHAR:case ee.SIGNED_CHAR:case ee.UNSIGNED_CHAR:return 1;case v:case x:case ee.UNSIGNED_SHORT:case ee.SHORT:case ee.VOID:return 2;default:return 4}},t.getDefaultTextureInternalFormat=(p,v,x=null,S=!1)=>{switch(p){case ee.UNSIGNED_CHAR:switch(v){case 1:return e.context.R8;case 2:return e.context.RG8;case 3:return e.context.RGB8;default:return e.context.RGBA8}case(x&&!S&&ee.UNSIGNED_SHORT):switch(v){case 1:return x.R16_EXT;case 2:return x.RG16_EXT;case 3:return x.RGB16_EXT;default:return x.RGBA16_EXT}case(x&&!S&&ee.SHORT):switch(v){case 1:return x.R16_SNORM_EXT;case 2:return x.RG16_SNORM_EXT;case 3:return x.RGB16_SNORM_EXT;default:return x.RGBA16_SNORM_EXT}case ee.UNSIGNED_SHORT:case ee.SHORT:case ee.FLOAT:default:switch(v){case 1:return S?e.context.R16F:e.context.R32F;case 2:return S?e.context.RG16F:e.context.RG32F;case 3:return S?e.context.RGB16F:e.context.RGB32F;default:return S?e.context.RGBA16F:e.context.RGBA32F}}},t.setBackgroundImage=p=>{e.bgImage.src=p.src},t.setUseBackgroundImage=p=>{e.useBackgroundImage=p,e.useBackgroundImage&&!e.el.contains(e.bgImage)?e.el.appendChild(e.bgImage):!e.useBackgroundImage&&e.el.contains(e.bgImage)&&e.el.removeChild(e.bgImage)};function s(p=e.imageFormat){let v=document.createElement("canvas"),x=v.getContext("2d");v.width=e.canvas.width,v.height=e.canvas.height,x.drawImage(e.canvas,0,0);let S=e.canvas.getBoundingClientRect();e.renderable.getRenderers().forEach(d=>{d.getViewProps().forEach(C=>{if(C.getContainer){let w=C.getContainer().getElementsByTagName("canvas");for(let D=0;D<w.length;D++){let m=w[D],M=m.getBoundingClientRect(),R=M.x-S.x,E=M.y-S.y;x.drawImage(m,R,E)}}})});let T=v.toDataURL(p);v.remove(),t.invokeImageReady(T)}t.captureNextImage=(p="image/png",{resetCamera:v=!1,size:x=null,scale:S=1}={})=>{if(e.deleted)return null;let T=x||S!==1?x||e.size.map(C=>C*S):null;T!==null&&!e.manageCanvas&&(tD("Ignoring the requested screenshot size/scale: resizing the canvas requires manageCanvas=true on vtkOpenGLRenderWindow. Capturing at the current size instead."),T=null),e.imageFormat=p;let d=e.notifyStartCaptureImage;return e.notifyStartCaptureImage=!0,e._screenshot={size:T},new Promise((C,w)=>{let D=t.onImageReady(m=>{if(e._screenshot.size===null)e.notifyStartCaptureImage=d,D.unsubscribe(),e._screenshot.placeHolder&&(e.size=e._screenshot.originalSize,t.modified(),e._screenshot.cameras&&e._screenshot.cameras.forEach(({restoreParamsFn:M,arg:R})=>M(R)),t.traverseAllPasses(),e.el.removeChild(e._screenshot.placeHolder),e._screenshot.placeHolder.remove(),e._screenshot=null),C(m);else{let M=document.createElement("img");if(M.style=nD,M.src=m,e._screenshot.placeHolder=e.el.appendChild(M),e.canvas.style.display="none",e._screenshot.originalSize=e.size,e.size=e._screenshot.size,e.rootOpenGLRenderWindow?.resizeFromChildRenderWindows(),e._screenshot.size=null,t.modified(),v){let R=v!==!0;e._screenshot.cameras=e.renderable.getRenderers().map(E=>{let V=E.getActiveCamera(),N=V.get("focalPoint","position","parallelScale");return{resetCameraArgs:R?{renderer:E}:void 0,resetCameraFn:R?v:E.resetCamera,restoreParamsFn:V.set,arg:JSON.parse(JSON.stringify(N))}}),e._screenshot.cameras.forEach(({resetCameraFn:E,resetCameraArgs:V})=>E(V))}t.traverseAllPasses()}})})};let o;t.getHardwareMaximumLineWidth=()=>{if(o!=null)return o;let p=t.get3DContext(),v=p.getParameter(p.ALIASED_LINE_WIDTH_RANGE);return o=v[1],v[1]},t.getGLInformations=()=>{if(e._glInformation)return e._glInformation;let p=t.get3DContext(),v=p.getExtension("EXT_color_buffer_float"),x=p.getExtension("WEBGL_debug_renderer_info"),S=p.getExtension("EXT_texture_filter_anisotropic")||p.getExtension("WEBKIT_EXT_texture_filter_anisotropic"),T=[["Max Vertex Attributes","MAX_VERTEX_ATTRIBS",p.getParameter(p.MAX_VERTEX_ATTRIBS)],["Max Varying Vectors","MAX_VARYING_VECTORS",p.getParameter(p.MAX_VARYING_VECTORS)],["Max Vertex Uniform Vectors","MAX_VERTEX_UNIFORM_VECTORS",p.getParameter(p.MAX_VERTEX_UNIFORM_VECTORS)],["Max Fragment Uniform Vectors","MAX_FRAGMENT_UNIFORM_VECTORS",p.getParameter(p.MAX_FRAGMENT_UNIFORM_VECTORS)],["Max Fragment Texture Image Units","MAX_TEXTURE_IMAGE_UNITS",p.getParameter(p.MAX_TEXTURE_IMAGE_UNITS)],["Max Vertex Texture Image Units","MAX_VERTEX_TEXTURE_IMAGE_UNITS",p.getParameter(p.MAX_VERTEX_TEXTURE_IMAGE_UNITS)],["Max Combined Texture Image Units","MAX_COMBINED_TEXTURE_IMAGE_UNITS",p.getParameter(p.MAX_COMBINED_TEXTURE_IMAGE_UNITS)],["Max 2D Texture Size","MAX_TEXTURE_SIZE",p.getParameter(p.MAX_TEXTURE_SIZE)],["Max Cube Texture Size","MAX_CUBE_MAP_TEXTURE_SIZE",p.getParameter(p.MAX_CUBE_MAP_TEXTURE_SIZE)],["Max Texture Anisotropy","MAX_TEXTURE_MAX_ANISOTROPY_EXT",S&&p.getParameter(S.MAX_TEXTURE_MAX_ANISOTROPY_EXT)],["Point Size Range","ALIASED_POINT_SIZE_RANGE",p.getParameter(p.ALIASED_POINT_SIZE_RANGE).join(" - ")],["Line Width Range","ALIASED_LINE_WIDTH_RANGE",p.getParameter(p.ALIASED_LINE_WIDTH_RANGE).join(" - ")],["Max Viewport Dimensions","MAX_VIEWPORT_DIMS",p.getParameter(p.MAX_VIEWPORT_DIMS).join(" - ")],["Max Renderbuffer Size","MAX_RENDERBUFFER_SIZE",p.getParameter(p.MAX_RENDERBUFFER_SIZE)],["Framebuffer Red Bits","RED_BITS",p.getParameter(p.RED_BITS)],["Framebuffer Green Bits","GREEN_BITS",p.getParameter(p.GREEN_BITS)],["Framebuffer Blue Bits","BLUE_BITS",p.getParameter(p.BLUE_BITS)],["Framebuffer Alpha Bits","ALPHA_BITS",p.getParameter(p.ALPHA_BITS)],["Framebuffer Depth Bits","DEPTH_BITS",p.getParameter(p.DEPTH_BITS)],["Framebuffer Stencil Bits","STENCIL_BITS",p.getParameter(p.STENCIL_BITS)],["Framebuffer Subpixel Bits","SUBPIXEL_BITS",p.getParameter(p.SUBPIXEL_BITS)],["MSAA Samples","SAMPLES",p.getParameter(p.SAMPLES)],["MSAA Sample Buffers","SAMPLE_BUFFERS",p.getParameter(p.SAMPLE_BUFFERS)],["Supported Formats for UByte Render Targets     ","UNSIGNED_BYTE RENDER TARGET FORMATS",[At(p,p.RGBA8,p.RGBA,p.UNSIGNED_BYTE)?"RGBA8":"",At(p,p.RGB8,p.RGB,p.UNSIGNED_BYTE)?"RGB8":"",At(p,p.RG8,p.RG,p.UNSIGNED_BYTE)?"RG8":"",At(p,p.R8,p.RED,p.UNSIGNED_BYTE)?"R8":""].join(" ")],["Supported Formats for Half Float Render Targets","HALF FLOAT RENDER TARGET FORMATS",[v&&At(p,p.RGBA16F,p.RGBA,p.HALF_FLOAT)?"RGBA16F":"",v&&At(p,p.RG16F,p.RG,p.HALF_FLOAT)?"RG16F":"",v&&At(p,p.R16F,p.RED,p.HALF_FLOAT)?"R16F":""].join(" ")],["Supported Formats for Full Float Render Targets","FLOAT RENDER TARGET FORMATS",[v&&At(p,p.RGBA32F,p.RGBA,p.FLOAT)?"RGBA32F":"",v&&At(p,p.RG32F,p.RG,p.FLOAT)?"RG32F":"",v&&At(p,p.R32F,p.RED,p.FLOAT)?"R32F":""].join(" ")],["Max Multiple Render Targets Buffers","MAX_DRAW_BUFFERS",p.getParameter(p.MAX_DRAW_BUFFERS)],["High Float Precision in Vertex Shader","HIGH_FLOAT VERTEX_SHADER",[p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.HIGH_FLOAT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.HIGH_FLOAT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.HIGH_FLOAT).rangeMax,"</sup>)"].join("")],["Medium Float Precision in Vertex Shader","MEDIUM_FLOAT VERTEX_SHADER",[p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.MEDIUM_FLOAT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.MEDIUM_FLOAT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.MEDIUM_FLOAT).rangeMax,"</sup>)"].join("")],["Low Float Precision in Vertex Shader","LOW_FLOAT VERTEX_SHADER",[p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.LOW_FLOAT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.LOW_FLOAT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.LOW_FLOAT).rangeMax,"</sup>)"].join("")],["High Float Precision in Fragment Shader","HIGH_FLOAT FRAGMENT_SHADER",[p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.HIGH_FLOAT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.HIGH_FLOAT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.HIGH_FLOAT).rangeMax,"</sup>)"].join("")],["Medium Float Precision in Fragment Shader","MEDIUM_FLOAT FRAGMENT_SHADER",[p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.MEDIUM_FLOAT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.MEDIUM_FLOAT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.MEDIUM_FLOAT).rangeMax,"</sup>)"].join("")],["Low Float Precision in Fragment Shader","LOW_FLOAT FRAGMENT_SHADER",[p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.LOW_FLOAT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.LOW_FLOAT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.LOW_FLOAT).rangeMax,"</sup>)"].join("")],["High Int Precision in Vertex Shader","HIGH_INT VERTEX_SHADER",[p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.HIGH_INT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.HIGH_INT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.HIGH_INT).rangeMax,"</sup>)"].join("")],["Medium Int Precision in Vertex Shader","MEDIUM_INT VERTEX_SHADER",[p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.MEDIUM_INT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.MEDIUM_INT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.MEDIUM_INT).rangeMax,"</sup>)"].join("")],["Low Int Precision in Vertex Shader","LOW_INT VERTEX_SHADER",[p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.LOW_INT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.LOW_INT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.VERTEX_SHADER,p.LOW_INT).rangeMax,"</sup>)"].join("")],["High Int Precision in Fragment Shader","HIGH_INT FRAGMENT_SHADER",[p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.HIGH_INT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.HIGH_INT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.HIGH_INT).rangeMax,"</sup>)"].join("")],["Medium Int Precision in Fragment Shader","MEDIUM_INT FRAGMENT_SHADER",[p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.MEDIUM_INT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.MEDIUM_INT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.MEDIUM_INT).rangeMax,"</sup>)"].join("")],["Low Int Precision in Fragment Shader","LOW_INT FRAGMENT_SHADER",[p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.LOW_INT).precision," (-2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.LOW_INT).rangeMin,"</sup> - 2<sup>",p.getShaderPrecisionFormat(p.FRAGMENT_SHADER,p.LOW_INT).rangeMax,"</sup>)"].join("")],["Supported Extensions","EXTENSIONS",p.getSupportedExtensions().join("<br/>					    ")],["WebGL Renderer","RENDERER",p.getParameter(p.RENDERER)],["WebGL Vendor","VENDOR",p.getParameter(p.VENDOR)],["WebGL Version","VERSION",p.getParameter(p.VERSION)],["Shading Language Version","SHADING_LANGUAGE_VERSION",p.getParameter(p.SHADING_LANGUAGE_VERSION)],["Unmasked Renderer","UNMASKED_RENDERER",x&&p.getParameter(x.UNMASKED_RENDERER_WEBGL)],["Unmasked Vendor","UNMASKED_VENDOR",x&&p.getParameter(x.UNMASKED_VENDOR_WEBGL)],["WebGL Version","WEBGL_VERSION",2]],d={};for(;T.length;){let[C,w,D]=T.pop();w&&(d[w]={label:C,value:D})}return e._glInformation=d,d},t.traverseAllPasses=()=>{if(e.renderPasses)for(let v=0;v<e.renderPasses.length;++v)e.renderPasses[v].traverse(t,null);t.copyParentContent(),e.notifyStartCaptureImage&&s();let p=e.renderable.getChildRenderWindowsByReference();for(let v=0;v<p.length;++v)t.getViewNodeFor(p[v])?.traverseAllPasses()},t.copyParentContent=()=>{let p=e.rootOpenGLRenderWindow;if(!p||!e.context2D||e.children.some(S=>!!S.getSelector?.()))return;let v=p.getCanvas(),x=e.canvas;e.context2D.drawImage(v,0,v.height-x.height,x.width,x.height,0,0,x.width,x.height)},t.resizeFromChildRenderWindows=()=>{let p=e.renderable.getChildRenderWindowsByReference();if(p.length>0){let v=[0,0];for(let x=0;x<p.length;++x){let S=t.getViewNodeFor(p[x])?.getSize();S&&(v[0]=S[0]>v[0]?S[0]:v[0],v[1]=S[1]>v[1]?S[1]:v[1])}t.setSize(...v)}},t.disableCullFace=()=>{e.cullFaceEnabled&&(e.context.disable(e.context.CULL_FACE),e.cullFaceEnabled=!1)},t.enableCullFace=()=>{e.cullFaceEnabled||(e.context.enable(e.context.CULL_FACE),e.cullFaceEnabled=!0)},t.setCullFaceMode=p=>{e.cullFaceMode!==p&&(e.context.cullFace(p),e.cullFaceMode=p)},t.setViewStream=p=>{if(e.viewStream===p)return!1;if(e.subscription&&(e.subscription.unsubscribe(),e.subscription=null),e.viewStream=p,e.viewStream){let v=e.renderable.getRenderers()[0];v.getBackgroundByReference()[3]=0,t.setUseBackgroundImage(!0),e.subscription=e.viewStream.onImageReady(x=>t.setBackgroundImage(x.image)),e.viewStream.setSize(e.size[0],e.size[1]),e.viewStream.invalidateCache(),e.viewStream.render(),t.modified()}return!0},t.createSelector=()=>{let p=Vc.newInstance();return p.setOpenGLRenderWindow(t),p};function c(){e.canvas.removeEventListener("webglcontextlost",nv),e.canvas.removeEventListener("webglcontextrestored",t.restoreContext)}let f=()=>{let p=e.rootOpenGLRenderWindow;return p?!p.isDeleted():!!e.context};function u(p,v=t){f()&&p?.filter(x=>!x.isDeleted()).forEach(x=>x.releaseGraphicsResources?.(v))}function g(p){p.isDeleted()||!p.isA("vtkOpenGLRenderWindow")||(u(p.getRenderPasses(),p),p.getChildrenByReference().forEach(g))}let l=t.setRenderPasses;t.setRenderPasses=p=>{let v=e.renderPasses;return l(p)?(u(v?.filter(x=>!e.renderPasses?.includes(x))),!0):!1},t.delete=O.chain(()=>{u(e.renderPasses),e.context&&iD(),t.setContainer(),t.setViewStream()},c,t.delete),t.setActiveFramebuffer=p=>{e.activeFramebuffer=p};let h=t.setSize;t.setSize=(...p)=>{let v=h(...p);return v&&t.invokeWindowResizeEvent({width:e.size[0],height:e.size[1]}),v},t.registerGraphicsResourceUser=(p,v)=>{e._graphicsResources.has(p)||t.setGraphicsResourceForObject(p,null,null),e._graphicsResources.get(p)?.users.add(v)},t.unregisterGraphicsResourceUser=(p,v)=>{let x=e._graphicsResources.get(p);x&&(x.users.delete(v),x.users.size||(x.oglObject?.releaseGraphicsResources(t),e._graphicsResources.delete(p)))},t.getGraphicsResourceForObject=p=>e._graphicsResources.get(p),t.setGraphicsResourceForObject=(p,v,x)=>{if(!p)return;let S=e._graphicsResources.get(p);S?.oglObject?.releaseGraphicsResources(t),e._graphicsResources.set(p,{coreObject:p,oglObject:v,hash:x,users:S?.users??new Set})},t.getGraphicsMemoryInfo=()=>{let p=0;return e._graphicsResources.forEach(({oglObject:v})=>{p+=v.getAllocatedGPUMemoryInBytes()}),p},t.releaseGraphicsResources=()=>{g(t),e.shaderCache!==null&&e.shaderCache.releaseGraphicsResources(t),e._graphicsResources.forEach(({oglObject:p})=>{p.releaseGraphicsResources(t)}),e._graphicsResources.clear(),e.textureUnitManager!==null&&e.textureUnitManager.freeAll(),e.renderable.getRenderersByReference().forEach(p=>{t.getViewNodeFor(p)?.releaseGraphicsResources()})};let y={...t};rD.forEach(p=>{t[p]=(...v)=>e.rootOpenGLRenderWindow?e.rootOpenGLRenderWindow[p](...v):y[p](...v)})}var oD={cullFaceEnabled:!1,cullFaceMode:null,shaderCache:null,initialized:!1,context:null,context2D:null,canvas:null,manageCanvas:!0,cursorVisibility:!0,cursor:"pointer",textureUnitManager:null,textureResourceIds:null,containerSize:null,renderPasses:[],notifyStartCaptureImage:!1,activeFramebuffer:null,imageFormat:"image/png",useOffScreen:!1,useBackgroundImage:!1};function cD(t,e,n={}){Object.assign(e,oD,n),ls.extend(t,e,n),e.canvas||(e.canvas=document.createElement("canvas"),e.canvas.style.width="100%"),e.selector||(e.selector=Vc.newInstance(),e.selector.setOpenGLRenderWindow(t)),e.bgImage=new Image,e.bgImage.style.position="absolute",e.bgImage.style.left="0",e.bgImage.style.top="0",e.bgImage.style.width="100%",e.bgImage.style.height="100%",e.bgImage.style.zIndex="-1",e._textureResourceIds=new Map,e._graphicsResources=new Map,e._glInformation=null,e.myFactory=lu.newInstance(),e.shaderCache=Z0.newInstance(),e.shaderCache.setOpenGLRenderWindow(t),e.renderPasses[0]=G0.newInstance(),O.get(t,e,["shaderCache","textureUnitManager","useBackgroundImage","activeFramebuffer","rootOpenGLRenderWindow"]),O.setGet(t,e,["initialized","context","context2D","canvas","manageCanvas","renderPasses","notifyStartCaptureImage","cursor","useOffScreen"]),O.setGetArray(t,e,["size"],2),O.event(t,e,"imageReady"),O.event(t,e,"windowResizeEvent"),sD(t,e)}var av=O.newInstance(cD,"vtkOpenGLRenderWindow");wa("WebGL",av);le("vtkRenderWindow",av);var fD={Verts:0,Lines:1,Triangles:2,Strips:3,LinesFromStrips:4,LinesFromTriangles:5,Points:6,UniformArray:7,PointArray:8,NormalsFromPoints:9,Texture:10,RawVertex:11,Storage:12,Index:13},uD={Start:0,Points:0,Lines:1,Triangles:2,TriangleStrips:3,TriangleEdges:4,TriangleStripEdges:5,End:6},On={BufferUsage:fD,PrimitiveTypes:uD};var _c=["getMappedRange","mapAsync","unmap"];function lD(t,e,n,r){let a=r.byteLength,i=t.createBuffer({size:a,usage:GPUBufferUsage.COPY_SRC,mappedAtCreation:!0}),s=i.getMappedRange(0,a);new Uint8Array(s).set(new Uint8Array(r)),i.unmap();let o=t.createCommandEncoder();o.copyBufferToBuffer(i,0,e,n,a);let c=o.finish();t.queue.submit([c]),i.destroy()}function gD(t,e){e.classHierarchy.push("vtkWebGPUBuffer"),t.create=(n,r)=>{e.handle=e.device.getHandle().createBuffer({size:n,usage:r,label:e.label}),e.sizeInBytes=n,e.usage=r},t.write=n=>{lD(e.device.getHandle(),e.handle,0,n.buffer)},t.createAndWrite=(n,r)=>{let a=Math.ceil(n.byteLength/4)*4;e.handle=e.device.getHandle().createBuffer({size:a,usage:r,mappedAtCreation:!0,label:e.label}),e.sizeInBytes=a,e.usage=r,new Uint8Array(e.handle.getMappedRange()).set(new Uint8Array(n.buffer)),e.handle.unmap()};for(let n=0;n<_c.length;n++)t[_c[n]]=(...r)=>e.handle[_c[n]](...r)}var pD={device:null,handle:null,sizeInBytes:0,strideInBytes:0,arrayInformation:null,usage:null,label:null,sourceTime:null};function iv(t,e,n={}){Object.assign(e,pD,n),O.obj(t,e),O.get(t,e,["handle","sizeInBytes","usage"]),O.setGet(t,e,["strideInBytes","device","arrayInformation","label","sourceTime"]),gD(t,e)}var hD=O.newInstance(iv),Pt={newInstance:hD,extend:iv,...On};function vD(t,e){e.classHierarchy.push("vtkWebGPUShaderModule"),t.initialize=(n,r)=>{e.device=n,e.handle=e.device.getHandle().createShaderModule({code:r.getCode()})}}var dD={device:null,handle:null};function sv(t,e,n={}){Object.assign(e,dD,n),O.obj(t,e),O.get(t,e,["lastCameraMTime"]),O.setGet(t,e,["device","handle"]),vD(t,e)}var ov={newInstance:O.newInstance(sv,"vtkWebGPUShaderModule"),extend:sv};function TD(t,e,n,r=!0){let a=Array.isArray(n)?n.join(`
`):n,i=!1;t.search(e)!==-1&&(i=!0);let s="";r&&(s="g");let o=new RegExp(e,s),c=t.replace(o,a);return{replace:i,result:c}}function xD(t,e){e.classHierarchy.push("vtkWebGPUShaderCache"),t.getShaderModule=n=>{let r=n.getType(),a=n.getHash(),i=e._shaderModules.keys();for(let o=0;o<i.length;o++){let c=i[o];if(c.getHash()===a&&c.getType()===r)return e._shaderModules.get(c)}let s=ov.newInstance();return s.initialize(e.device,n),e._shaderModules.set(n,s),s}}var yD={shaderModules:null,device:null,window:null};function cv(t,e,n={}){Object.assign(e,yD,n),e._shaderModules=new Map,O.obj(t,e),O.setGet(t,e,["device","window"]),xD(t,e)}var mD=O.newInstance(cv,"vtkWebGPUShaderCache"),Te={newInstance:mD,extend:cv,substitute:TD};var{vtkErrorMacro:SD}=O;function CD(t,e){e.classHierarchy.push("vtkWebGPUBindGroup"),t.setBindables=n=>{if(e.bindables.length===n.length){let r=!0;for(let a=0;a<e.bindables.length;a++)e.bindables[a]!==n[a]&&(r=!1);if(r)return}e.bindables=n,t.modified()},t.getBindGroupLayout=n=>{let r=[];for(let a=0;a<e.bindables.length;a++){e.bindables[a].setDevice?.(n);let i=e.bindables[a].getBindGroupLayoutEntry();i.binding=a,r.push(i)}return n.getBindGroupLayout({entries:r})},t.getBindGroup=n=>{let r=e.bindGroupDevice!==n;for(let s=0;s<e.bindables.length;s++)e.bindables[s].setDevice?.(n);let a=t.getMTime();for(let s=0;s<e.bindables.length;s++){let o=e.bindables[s].getBindGroupTime().getMTime();a=o>a?o:a}if(!r&&a<e.bindGroupTime.getMTime())return e.bindGroup;let i=[];for(let s=0;s<e.bindables.length;s++){let o=e.bindables[s].getBindGroupEntry();o.binding=s,i.push(o)}return e.bindGroup=n.getHandle().createBindGroup({layout:t.getBindGroupLayout(n),entries:i,label:e.label}),e.bindGroupDevice=n,e.bindGroupTime.modified(),e.bindGroup},t.getShaderCode=n=>{let r=[],a=n.getBindGroupLayoutIndex(e.label);if(a<0)return SD(`vtkWebGPUBindGroup: bind group layout ${e.label} was not found in pipeline`),"";for(let i=0;i<e.bindables.length;i++)r.push(e.bindables[i].getShaderCode(i,a));return r.join(`
`)},t.releaseGraphicsResources=()=>{e.bindGroup=null,e.bindGroupDevice=null,e.bindGroupTime.modified(),t.modified()}}var wD={device:null,handle:null,bindGroupDevice:null,label:null};function fv(t,e,n={}){Object.assign(e,wD,n),O.obj(t,e),e.bindables=[],e.bindGroupTime={},O.obj(e.bindGroupTime,{mtime:0}),O.get(t,e,["bindGroupTime","handle","sizeInBytes","usage"]),O.setGet(t,e,["label","device","arrayInformation"]),CD(t,e)}var OD=O.newInstance(fv),uv={newInstance:OD,extend:fv};function RD(t,e){e.classHierarchy.push("vtkWebGPUPipeline"),t.getShaderDescriptions=()=>e.shaderDescriptions,t.applyPipelineSettings=(n,r)=>r?{...n,...r,primitive:{...n.primitive,...r.primitive},depthStencil:{...n.depthStencil,...r.depthStencil},fragment:{...n.fragment,...r.fragment}}:n,t.initialize=(n,r)=>{e.pipelineDescription=t.applyPipelineSettings(e.renderEncoder.getPipelineSettings(),e.extraPipelineSettings),e.pipelineDescription.primitive.topology=e.topology,e.pipelineDescription.vertex=e.vertexState,e.pipelineDescription.label=r;let a=[];for(let i=0;i<e.layouts.length;i++)a.push(e.layouts[i].layout);e.pipelineLayout=n.getHandle().createPipelineLayout({bindGroupLayouts:a}),e.pipelineDescription.layout=e.pipelineLayout;for(let i=0;i<e.shaderDescriptions.length;i++){let s=e.shaderDescriptions[i],o=n.getShaderModule(s);s.getType()==="vertex"&&(e.pipelineDescription.vertex.module=o.getHandle(),e.pipelineDescription.vertex.entryPoint="main"),s.getType()==="fragment"&&(e.pipelineDescription.fragment.module=o.getHandle(),e.pipelineDescription.fragment.entryPoint="main")}e.handle=n.getHandle().createRenderPipeline(e.pipelineDescription)},t.getShaderDescription=n=>{for(let r=0;r<e.shaderDescriptions.length;r++)if(e.shaderDescriptions[r].getType()===n)return e.shaderDescriptions[r];return null},t.addBindGroupLayout=n=>{n&&e.layouts.push({layout:n.getBindGroupLayout(e.device),label:n.getLabel()})},t.getBindGroupLayout=n=>e.layouts[n].layout,t.getBindGroupLayoutIndex=n=>{for(let r=0;r<e.layouts.length;r++)if(e.layouts[r].label===n)return r;return-1},t.bindVertexInput=(n,r)=>{r.bindBuffers(n)}}var MD={extraPipelineSettings:null,handle:null,layouts:null,renderEncoder:null,shaderDescriptions:null,vertexState:null,topology:null,pipelineDescription:null};function lv(t,e,n={}){Object.assign(e,MD,n),se(t,e),e.layouts=[],e.shaderDescriptions=[],Oe(t,e,["handle","pipelineDescription"]),ie(t,e,["device","extraPipelineSettings","renderEncoder","topology","vertexState"]),RD(t,e)}var ED=J(lv,"vtkWebGPUPipeline"),gv={newInstance:ED,extend:lv};function DD(t,e){e.classHierarchy.push("vtkWebGPUShaderDescription"),t.hasOutput=n=>e.outputNames.includes(n),t.addOutput=(n,r,a=void 0)=>{e.outputTypes.push(n),e.outputNames.push(r),e.outputInterpolations.push(a)},t.addBuiltinOutput=(n,r)=>{e.builtinOutputNames.includes(r)||(e.builtinOutputTypes.push(n),e.builtinOutputNames.push(r))},t.addBuiltinInput=(n,r)=>{e.builtinInputNames.includes(r)||(e.builtinInputTypes.push(n),e.builtinInputNames.push(r))},t.replaceShaderCode=(n,r)=>{let a=[],i=[];if(r&&a.push(r.getShaderCode()),n||e.builtinInputNames.length){let s=[];if(s.push(`struct ${e.type}Input
{`),n){let o=n.getOutputNamesByReference(),c=n.getOutputTypesByReference(),f=n.getOutputInterpolationsByReference();for(let u=0;u<o.length;u++)f[u]!==void 0?s.push(`  @location(${u}) @interpolate(${f[u]}) ${o[u]} : ${c[u]},`):s.push(`  @location(${u}) ${o[u]} : ${c[u]},`)}for(let o=0;o<e.builtinInputNames.length;o++)s.push(`  ${e.builtinInputNames[o]} : ${e.builtinInputTypes[o]},`);s.length>1&&(s.push("};"),i=s,a[a.length-1]+=",",a.push(`input: ${e.type}Input`))}if(a.length&&(e.code=Te.substitute(e.code,"//VTK::IOStructs::Input",a).result),e.outputNames.length+e.builtinOutputNames.length||e.code.includes("//VTK::IOStructs::Output")){let s=[`struct ${e.type}Output
{`];for(let o=0;o<e.outputNames.length;o++)e.outputInterpolations[o]!==void 0?s.push(`  @location(${o}) @interpolate(${e.outputInterpolations[o]}) ${e.outputNames[o]} : ${e.outputTypes[o]},`):s.push(`  @location(${o}) ${e.outputNames[o]} : ${e.outputTypes[o]},`);for(let o=0;o<e.builtinOutputNames.length;o++)s.push(`  ${e.builtinOutputNames[o]} : ${e.builtinOutputTypes[o]},`);s.push("};"),i=i.concat(s),e.code=Te.substitute(e.code,"//VTK::IOStructs::Output",[`-> ${e.type}Output`]).result}e.code=Te.substitute(e.code,"//VTK::IOStructs::Dec",i).result}}var VD={type:null,hash:null,code:null,outputNames:null,outputTypes:null};function pv(t,e,n={}){Object.assign(e,VD,n),e.outputNames=[],e.outputTypes=[],e.outputInterpolations=[],e.builtinOutputNames=[],e.builtinOutputTypes=[],e.builtinInputNames=[],e.builtinInputTypes=[],O.obj(t,e),O.setGet(t,e,["type","hash","code"]),O.getArray(t,e,["outputTypes","outputNames","outputInterpolations"]),DD(t,e)}var LD=O.newInstance(pv,"vtkWebGPUShaderDescription"),Fc={newInstance:LD,extend:pv};var hv={r8unorm:{numComponents:1,nativeType:Uint8Array,stride:1,elementSize:1,sampleType:"float"},r8snorm:{numComponents:1,nativeType:Int8Array,stride:1,elementSize:1,sampleType:"float"},r8uint:{numComponents:1,nativeType:Uint8Array,stride:1,elementSize:1,sampleType:"uint"},r8sint:{numComponents:1,nativeType:Int8Array,stride:1,elementSize:1,sampleType:"sint"},r16uint:{numComponents:1,nativeType:Uint16Array,stride:2,elementSize:2,sampleType:"uint"},r16sint:{numComponents:1,nativeType:Int16Array,stride:2,elementSize:2,sampleType:"sint"},r16unorm:{numComponents:1,nativeType:Uint16Array,stride:2,elementSize:2,sampleType:"float"},r16snorm:{numComponents:1,nativeType:Int16Array,stride:2,elementSize:2,sampleType:"float"},r16float:{numComponents:1,nativeType:Float32Array,stride:2,elementSize:2,sampleType:"float"},rg8unorm:{numComponents:2,nativeType:Uint8Array,stride:2,elementSize:1,sampleType:"float"},rg8snorm:{numComponents:2,nativeType:Int8Array,stride:2,elementSize:1,sampleType:"float"},rg8uint:{numComponents:2,nativeType:Uint8Array,stride:2,elementSize:1,sampleType:"uint"},rg8sint:{numComponents:2,nativeType:Int8Array,stride:2,elementSize:1,sampleType:"sint"},r32uint:{numComponents:1,nativeType:Uint32Array,stride:4,elementSize:4,sampleType:"uint"},r32sint:{numComponents:1,nativeType:Int32Array,stride:4,elementSize:4,sampleType:"sint"},r32float:{numComponents:1,nativeType:Float32Array,stride:4,elementSize:4,sampleType:"unfilterable-float"},rg16uint:{numComponents:2,nativeType:Uint16Array,stride:4,elementSize:2,sampleType:"uint"},rg16sint:{numComponents:2,nativeType:Int16Array,stride:4,elementSize:2,sampleType:"sint"},rg16unorm:{numComponents:2,nativeType:Uint16Array,stride:4,elementSize:2,sampleType:"float"},rg16snorm:{numComponents:2,nativeType:Int16Array,stride:4,elementSize:2,sampleType:"float"},rg16float:{numComponents:2,nativeType:Float32Array,stride:4,elementSize:2,sampleType:"float"},rgba8unorm:{numComponents:4,nativeType:Uint8Array,stride:4,elementSize:1,sampleType:"float"},"rgba8unorm-srgb":{numComponents:4,nativeType:Uint8Array,stride:4,elementSize:1,sampleType:"float"},rgba8snorm:{numComponents:4,nativeType:Int8Array,stride:4,elementSize:1,sampleType:"float"},rgba8uint:{numComponents:4,nativeType:Uint8Array,stride:4,elementSize:1,sampleType:"uint"},rgba8sint:{numComponents:4,nativeType:Int8Array,stride:4,elementSize:1,sampleType:"sint"},bgra8unorm:{numComponents:4,nativeType:Uint8Array,stride:4,elementSize:1,sampleType:"float"},"bgra8unorm-srgb":{numComponents:4,nativeType:Uint8Array,stride:4,elementSize:1,sampleType:"float"},rgb9e5ufloat:{numComponents:4,nativeType:Uint32Array,stride:4,sampleType:"float"},rgb10a2unorm:{numComponents:4,nativeType:Uint32Array,stride:4,sampleType:"float"},rg11b10ufloat:{numComponents:4,nativeType:Float32Array,stride:4,sampleType:"float"},rg32uint:{numComponents:2,nativeType:Uint32Array,stride:8,elementSize:4,sampleType:"uint"},rg32sint:{numComponents:2,nativeType:Int32Array,stride:8,elementSize:4,sampleType:"sint"},rg32float:{numComponents:2,nativeType:Float32Array,stride:8,elementSize:4,sampleType:"unfilterable-float"},rgba16uint:{numComponents:4,nativeType:Uint16Array,stride:8,elementSize:2,sampleType:"uint"},rgba16sint:{numComponents:4,nativeType:Int16Array,stride:8,elementSize:2,sampleType:"sint"},rgba16unorm:{numComponents:4,nativeType:Uint16Array,stride:8,elementSize:2,sampleType:"float"},rgba16snorm:{numComponents:4,nativeType:Int16Array,stride:8,elementSize:2,sampleType:"float"},rgba16float:{numComponents:4,nativeType:Float32Array,stride:8,elementSize:2,sampleType:"float"},rgba32uint:{numComponents:4,nativeType:Uint32Array,stride:16,elementSize:4,sampleType:"uint"},rgba32sint:{numComponents:4,nativeType:Int32Array,stride:16,elementSize:4,sampleType:"sint"},rgba32float:{numComponents:4,nativeType:Float32Array,stride:16,elementSize:4,sampleType:"unfilterable-float"},stencil8:{numComponents:1,nativeType:Uint8Array,stride:1,elementSize:1,sampleType:"uint"},depth16unorm:{numComponents:1,nativeType:Uint16Array,stride:2,elementSize:2,sampleType:"depth"},depth24plus:{numComponents:1,nativeType:Uint32Array,stride:4,elementSize:3,sampleType:"depth"},"depth24plus-stencil8":{numComponents:2,nativeType:Uint32Array,stride:4,sampleType:"mixed"},depth32float:{numComponents:1,nativeType:Float32Array,stride:4,elementSize:4,sampleType:"depth"}};function _D(t){return!t||t.length<6?0:t in hv?hv[t]:(ce(`unknown format ${t}`),null)}function FD(t){if(!t||t.length<5)return 0;let e=1;t[t.length-2]==="x"&&(e=Number(t[t.length-1]));let n=e===1?t.length-1:t.length-3,r=Number(t[n]);if(Number.isNaN(r))return ce(`unknown format ${t}`),0;let a=5-r/2;return e*a}function ND(t){if(!t||t.length<5)return 0;let e=1;return t[t.length-2]==="x"&&(e=Number(t[t.length-1])),e}function BD(t){if(!t||t.length<5)return 0;let e;if(t[0]==="f")e="Float";else if(t[0]==="s")e="Int";else if(t[0]==="u")e="Uint";else{ce(`unknown format ${t}`);return}let n=t.split("x")[0],r=Number(n[n.length-1]);if(Number.isNaN(r)){ce(`unknown format ${t}`);return}return e+=8*(5-r/2),e+="Array",e}function GD(t){let e;if(t[0]==="f"||t[1]==="n")e="f32";else if(t[0]==="s"&&t[1]==="i")e="i32";else if(t[0]==="u"&&t[1]==="i")e="u32";else{ce(`unknown format ${t}`);return}let n=1;return t[t.length-2]==="x"&&(n=Number(t[t.length-1])),n===4?`vec4<${e}>`:n===3?`vec3<${e}>`:n===2?`vec2<${e}>`:e}function UD(t){if(!t)return 0;let e=1;return t.substring(0,3)==="vec"?e=Number(t[3]):t.substring(0,3)==="mat"&&(e=t[3]*t[5]),e*4}function kD(t){if(t){if(t.includes("f32"))return"Float32Array";if(t.includes("i32"))return"Int32Array";if(t.includes("u32"))return"Uint32Array";ce(`unknown format ${t}`)}}var Fe={getDetailsFromTextureFormat:_D,getByteStrideFromBufferFormat:FD,getNumberOfComponentsFromBufferFormat:ND,getNativeTypeFromBufferFormat:BD,getShaderTypeFromBufferFormat:GD,getByteStrideFromShaderFormat:UD,getNativeTypeFromShaderFormat:kD};function bD(t,e){if(t===e)return!0;if(t==null||e==null||t.length!==e.length)return!1;let n=new Set(e);for(let r=0;r<t.length;++r)if(!n.has(t[r]))return!1;return!0}function zD(t,e){e.classHierarchy.push("vtkWebGPUVertexInput"),t.addBuffer=(n,r,a="vertex")=>{let i=r;Array.isArray(i)||(i=[i]);for(let s=0;s<e.inputs.length;s++)if(bD(e.inputs[s].names,i)){if(e.inputs[s].buffer===n)return;e.inputs[s].buffer=n;return}e.inputs.push({buffer:n,stepMode:a,names:i}),e.inputs=e.inputs.sort((s,o)=>s.names[0]<o.names[0]?-1:s.names[0]>o.names[0]?1:0)},t.removeBufferIfPresent=n=>{for(let r=0;r<e.inputs.length;r++)e.inputs[r].names.includes(n)&&e.inputs.splice(r,1)},t.getBuffer=n=>{for(let r=0;r<e.inputs.length;r++)if(e.inputs[r].names.includes(n))return e.inputs[r].buffer;return null},t.hasAttribute=n=>{for(let r=0;r<e.inputs.length;r++)if(e.inputs[r].names.includes(n))return!0;return!1},t.getAttributeTime=n=>{for(let r=0;r<e.inputs.length;r++)if(e.inputs[r].names.includes(n))return e.inputs[r].buffer.getSourceTime();return 0},t.getShaderCode=()=>{let n="",r=0;for(let a=0;a<e.inputs.length;a++)for(let i=0;i<e.inputs[a].names.length;i++){let s=e.inputs[a].buffer.getArrayInformation()[i],o=Fe.getShaderTypeFromBufferFormat(s.format);r>0&&(n+=`,
`),n=`${n}  @location(${r}) ${e.inputs[a].names[i]} : ${o}`,r++}return n},t.getVertexInputInformation=()=>{let n={};if(e.inputs.length){let r=[],a=0;for(let i=0;i<e.inputs.length;i++){let s=e.inputs[i].buffer,o={arrayStride:s.getStrideInBytes(),stepMode:e.inputs[i].stepMode,attributes:[]},c=s.getArrayInformation();for(let f=0;f<e.inputs[i].names.length;f++)o.attributes.push({shaderLocation:a,offset:c[f].offset,format:c[f].format}),a++;r.push(o)}n.buffers=r}return n},t.bindBuffers=n=>{for(let r=0;r<e.inputs.length;r++)n.setVertexBuffer(r,e.inputs[r].buffer.getHandle());e.indexBuffer&&n.setIndexBuffer(e.indexBuffer.getHandle(),e.indexBuffer.getArrayInformation()[0].format)},t.getReady=()=>{},t.releaseGraphicsResources=()=>{e.created&&(e.inputs=[],e.bindingDescriptions=[],e.attributeDescriptions=[])}}var WD={inputs:null,bindingDescriptions:!1,attributeDescriptions:null,indexBuffer:null};function vv(t,e,n={}){Object.assign(e,WD,n),se(t,e),e.bindingDescriptions=[],e.attributeDescriptions=[],e.inputs=[],ie(t,e,["created","device","handle","indexBuffer"]),zD(t,e)}var AD=J(vv,"vtkWebGPUVertexInput"),dv={newInstance:AD,extend:vv};var PD=`
//VTK::Renderer::Dec

//VTK::Color::Dec

//VTK::Normal::Dec

//VTK::TCoord::Dec

//VTK::Select::Dec

//VTK::Mapper::Dec

//VTK::IOStructs::Dec

@vertex
fn main(
//VTK::IOStructs::Input
)
//VTK::IOStructs::Output
{
  var output : vertexOutput;

  // var vertex: vec4<f32> = vertexBC;

  //VTK::Color::Impl

  //VTK::Normal::Impl

  //VTK::TCoord::Impl

  //VTK::Select::Impl

  //VTK::Position::Impl

  return output;
}
`,HD=`
//VTK::Renderer::Dec

//VTK::Color::Dec

//VTK::Normal::Dec

//VTK::TCoord::Dec

//VTK::Select::Dec

//VTK::RenderEncoder::Dec

//VTK::Mapper::Dec

//VTK::IOStructs::Dec

@fragment
fn main(
//VTK::IOStructs::Input
)
//VTK::IOStructs::Output
{
  var output : fragmentOutput;

  //VTK::Color::Impl

  //VTK::Normal::Impl

  //VTK::Light::Impl

  //VTK::TCoord::Impl

  //VTK::Select::Impl

  // var computedColor:vec4<f32> = vec4<f32>(1.0,0.5,0.5,1.0);

  //VTK::RenderEncoder::Impl
  return output;
}
`;function ID(t,e){e.classHierarchy.push("vtkWebGPUSimpleMapper"),t.generateShaderDescriptions=(n,r,a)=>{let i=Fc.newInstance({type:"vertex",hash:n,code:e.vertexShaderTemplate}),s=Fc.newInstance({type:"fragment",hash:n,code:e.fragmentShaderTemplate}),o=r.getShaderDescriptions();o.push(i),o.push(s);let c=e.vertexShaderTemplate+e.fragmentShaderTemplate,f=new RegExp("//VTK::[^:]*::","g"),u=c.match(f).filter((g,l,h)=>h.indexOf(g)===l).map(g=>`replaceShader${g.substring(7,g.length-2)}`);for(let g=0;g<u.length;g++){let l=u[g];l!=="replaceShaderIOStructs"&&e.shaderReplacements.has(l)&&e.shaderReplacements.get(l)(n,r,a)}t.replaceShaderIOStructs(n,r,a)},t.replaceShaderIOStructs=(n,r,a)=>{let i=r.getShaderDescription("vertex");i.replaceShaderCode(null,a),r.getShaderDescription("fragment").replaceShaderCode(i)},t.replaceShaderRenderEncoder=(n,r,a)=>{e.renderEncoder.replaceShaderCode(r)},e.shaderReplacements.set("replaceShaderRenderEncoder",t.replaceShaderRenderEncoder),t.replaceShaderRenderer=(n,r,a)=>{if(!e.WebGPURenderer)return;let i=e.WebGPURenderer.getBindGroup().getShaderCode(r),s=r.getShaderDescription("vertex"),o=s.getCode();o=Te.substitute(o,"//VTK::Renderer::Dec",[i]).result,s.setCode(o);let c=r.getShaderDescription("fragment");o=c.getCode(),o=Te.substitute(o,"//VTK::Renderer::Dec",[i]).result,c.setCode(o)},e.shaderReplacements.set("replaceShaderRenderer",t.replaceShaderRenderer),t.replaceShaderMapper=(n,r,a)=>{let i=e.bindGroup.getShaderCode(r),s=r.getShaderDescription("vertex"),o=s.getCode();o=Te.substitute(o,"//VTK::Mapper::Dec",[i]).result,s.setCode(o);let c=r.getShaderDescription("fragment");c.addBuiltinInput("bool","@builtin(front_facing) frontFacing"),o=c.getCode(),o=Te.substitute(o,"//VTK::Mapper::Dec",[i]).result,c.setCode(o)},e.shaderReplacements.set("replaceShaderMapper",t.replaceShaderMapper),t.replaceShaderPosition=(n,r,a)=>{let i=r.getShaderDescription("vertex");i.addBuiltinOutput("vec4<f32>","@builtin(position) Position");let s=i.getCode();s=Te.substitute(s,"//VTK::Position::Impl",["    output.Position = rendererUBO.SCPCMatrix*vertexBC;"]).result,i.setCode(s)},e.shaderReplacements.set("replaceShaderPosition",t.replaceShaderPosition),t.replaceShaderTCoord=(n,r,a)=>{r.getShaderDescription("vertex").addOutput("vec2<f32>","tcoordVS")},e.shaderReplacements.set("replaceShaderTCoord",t.replaceShaderTCoord),t.addTextureView=n=>{e.textureViews.includes(n)||e.textureViews.push(n)},t.prepareToDraw=n=>{e.renderEncoder=n,t.updateInput(),t.updateBuffers(),t.updateBindings(),t.updatePipeline()},t.updateInput=()=>{},t.updateBuffers=()=>{},t.updateBindings=()=>{e.bindGroup.setBindables(t.getBindables())},t.computePipelineHash=()=>{},t.getPipelineSettings=()=>null,t.registerDrawCallback=n=>{n.registerDrawCallback(e.pipeline,t.draw)},t.prepareAndDraw=n=>{t.prepareToDraw(n),n.setPipeline(e.pipeline),t.draw(n)},t.draw=n=>{if(e.numberOfVertices===0||e.numberOfInstances===0)return;let r=n.getBoundPipeline();n.activateBindGroup(e.bindGroup),e.WebGPURenderer&&e.WebGPURenderer.bindUBO(n),r.bindVertexInput(n,e.vertexInput);let a=e.vertexInput.getIndexBuffer();a?n.drawIndexed(a.getIndexCount(),e.numberOfInstances,0,0,0):n.draw(e.numberOfVertices,e.numberOfInstances,0,0)},t.getBindables=()=>{let n=[...e.additionalBindables];e.UBO&&n.push(e.UBO),e.SSBO&&n.push(e.SSBO);for(let r=0;r<e.textureViews.length;r++){n.push(e.textureViews[r]);let a=e.textureViews[r].getSampler();a&&n.push(a)}return n},t.updatePipeline=()=>{t.computePipelineHash();let n=`${e.pipelineHash}${e.renderEncoder?.getPipelineHash()??""}`;e.pipeline=e.device.getPipeline(n),e.pipeline||(e.pipeline=gv.newInstance(),e.pipeline.setDevice(e.device),e.WebGPURenderer&&e.pipeline.addBindGroupLayout(e.WebGPURenderer.getBindGroup()),e.pipeline.addBindGroupLayout(e.bindGroup),t.generateShaderDescriptions(e.pipelineHash,e.pipeline,e.vertexInput),e.pipeline.setExtraPipelineSettings(t.getPipelineSettings()),e.pipeline.setTopology(e.topology),e.pipeline.setRenderEncoder(e.renderEncoder),e.pipeline.setVertexState(e.vertexInput.getVertexInputInformation()),e.device.createPipeline(n,e.pipeline))},t.releaseGraphicsResources=()=>{e.vertexInput?.releaseGraphicsResources?.(),e.bindGroup?.releaseGraphicsResources?.(),e.UBO?.releaseGraphicsResources?.(),e.SSBO?.releaseGraphicsResources?.(),e.pipeline=null,e.renderEncoder=null,e.textureViews.length=0}}var jD={additionalBindables:void 0,bindGroup:null,device:null,fragmentShaderTemplate:null,numberOfInstances:1,numberOfVertices:0,pipelineHash:null,shaderReplacements:null,SSBO:null,textureViews:null,topology:"triangle-list",UBO:null,vertexShaderTemplate:null,WebGPURenderer:null};function Tv(t,e,n={}){Object.assign(e,jD,n),ue.extend(t,e,n),e.textureViews=[],e.vertexInput=dv.newInstance(),e.bindGroup=uv.newInstance({label:"mapperBG"}),e.additionalBindables=[],e.fragmentShaderTemplate=e.fragmentShaderTemplate||HD,e.vertexShaderTemplate=e.vertexShaderTemplate||PD,e.shaderReplacements=new Map,O.get(t,e,["pipeline","vertexInput"]),O.setGet(t,e,["additionalBindables","device","fragmentShaderTemplate","interpolate","numberOfInstances","numberOfVertices","pipelineHash","shaderReplacements","SSBO","textureViews","topology","UBO","vertexShaderTemplate","WebGPURenderer"]),ID(t,e)}var $D=O.newInstance(Tv,"vtkWebGPUSimpleMapper"),ps={newInstance:$D,extend:Tv};function KD(t,e){e.classHierarchy.push("vtkWebGPUFullScreenQuad"),t.replaceShaderPosition=(n,r,a)=>{let i=r.getShaderDescription("vertex");i.addBuiltinOutput("vec4<f32>","@builtin(position) Position"),i.addOutput("vec4<f32>","vertexVC");let s=i.getCode();s=Te.substitute(s,"//VTK::Position::Impl",["output.tcoordVS = vec2<f32>(vertexBC.x * 0.5 + 0.5, 1.0 - vertexBC.y * 0.5 - 0.5);","output.Position = vec4<f32>(vertexBC, 1.0);","output.vertexVC = vec4<f32>(vertexBC, 1);"]).result,i.setCode(s)},e.shaderReplacements.set("replaceShaderPosition",t.replaceShaderPosition),t.updateBuffers=()=>{let n=e.device.getBufferManager().getFullScreenQuadBuffer();e.vertexInput.addBuffer(n,["vertexBC"]),e.numberOfVertices=6}}var XD={};function xv(t,e,n={}){Object.assign(e,XD,n),ps.extend(t,e,n),KD(t,e)}var YD=O.newInstance(xv,"vtkWebGPUFullScreenQuad"),Rn={newInstance:YD,extend:xv};var{vtkErrorMacro:qD}=Ce,Nc=["setBindGroup","setIndexBuffer","setVertexBuffer","draw","drawIndexed"];function ZD(t,e){e.classHierarchy.push("vtkWebGPURenderEncoder"),t.begin=n=>{e.drawCallbacks=[],e.handle=n.beginRenderPass(e.description),e.label&&e.handle.pushDebugGroup(e.label)},t.end=()=>{for(let n=0;n<e.drawCallbacks.length;n++){let r=e.drawCallbacks[n],a=r.pipeline;t.setPipeline(a);for(let i=0;i<r.callbacks.length;i++)r.callbacks[i](t)}e.label&&e.handle.popDebugGroup(),e.handle.end(),e.boundPipeline=null},t.setPipeline=n=>{if(e.boundPipeline===n)return;e.handle.setPipeline(n.getHandle());let r=n.getPipelineDescription(),a=r.fragment?.targets;if(e.colorTextureViews.length!==a.length)console.log(`mismatched attachment counts on pipeline ${a.length} while encoder has ${e.colorTextureViews.length}`),console.trace();else for(let i=0;i<e.colorTextureViews.length;i++){let s=e.colorTextureViews[i].getTexture()?.getFormat();s&&s!==a[i].format&&(console.log(`mismatched attachments for attachment ${i} on pipeline ${a[i].format} while encoder has ${s}`),console.trace())}if(!!e.depthTextureView!="depthStencil"in r)console.log("mismatched depth attachments"),console.trace();else if(e.depthTextureView){let i=e.depthTextureView.getTexture()?.getFormat();i&&i!==r.depthStencil.format&&(console.log(`mismatched depth attachments on pipeline ${r.depthStencil.format} while encoder has ${i}`),console.trace())}e.boundPipeline=n},t.replaceShaderCode=n=>{e.replaceShaderCodeFunction(n)},t.setColorTextureView=(n,r)=>{e.colorTextureViews[n]!==r&&(e.colorTextureViews[n]=r)},t.setResolveTextureView=(n,r)=>{e.resolveTextureViews[n]!==r&&(e.resolveTextureViews[n]=r)},t.activateBindGroup=n=>{let r=e.boundPipeline.getDevice(),a=e.boundPipeline.getBindGroupLayoutIndex(n.getLabel());if(a<0){qD(`vtkWebGPURenderEncoder: could not find bind group layout ${n.getLabel()}`);return}e.handle.setBindGroup(a,n.getBindGroup(r));let i=r.getBindGroupLayoutDescription(n.getBindGroupLayout(r)),s=r.getBindGroupLayoutDescription(e.boundPipeline.getBindGroupLayout(a));i!==s&&(console.log(`renderEncoder ${e.pipelineHash} mismatched bind group layouts bind group has
${i}
 versus pipeline
${s}
`),console.trace())},t.attachTextureViews=()=>{for(let n=0;n<e.colorTextureViews.length;n++)e.description.colorAttachments[n]?e.description.colorAttachments[n].view=e.colorTextureViews[n].getHandle():e.description.colorAttachments[n]={view:e.colorTextureViews[n].getHandle()},e.resolveTextureViews[n]&&(e.description.colorAttachments[n].resolveTarget=e.resolveTextureViews[n].getHandle(),e.description.colorAttachments[n].storeOp="discard");e.depthTextureView&&(e.description.depthStencilAttachment.view=e.depthTextureView.getHandle())},t.registerDrawCallback=(n,r)=>{for(let a=0;a<e.drawCallbacks.length;a++)if(e.drawCallbacks[a].pipeline===n){e.drawCallbacks[a].callbacks.push(r);return}e.drawCallbacks.push({pipeline:n,callbacks:[r]})};for(let n=0;n<Nc.length;n++)t[Nc[n]]=(...r)=>e.handle[Nc[n]](...r)}var QD={description:null,handle:null,boundPipeline:null,pipelineHash:null,pipelineSettings:null,replaceShaderCodeFunction:null,depthTextureView:null,label:null};function yv(t,e,n={}){Object.assign(e,QD,n),se(t,e),e.description={colorAttachments:[{view:void 0,loadOp:"load",storeOp:"store"}],depthStencilAttachment:{view:void 0,depthLoadOp:"clear",depthClearValue:0,depthStoreOp:"store"}},e.replaceShaderCodeFunction=r=>{let a=r.getShaderDescription("fragment");a.addOutput("vec4<f32>","outColor");let i=a.getCode();i=Te.substitute(i,"//VTK::RenderEncoder::Impl",["output.outColor = computedColor;"]).result,a.setCode(i)},e.pipelineSettings={primitive:{cullMode:"none"},depthStencil:{depthWriteEnabled:!0,depthCompare:"greater-equal",format:"depth32float"},fragment:{targets:[{format:"rgba16float",blend:{color:{srcFactor:"src-alpha",dstFactor:"one-minus-src-alpha"},alpha:{srcFactor:"one",dstFactor:"one-minus-src-alpha"}}}]}},e.colorTextureViews=[],e.resolveTextureViews=[],Oe(t,e,["boundPipeline","colorTextureViews"]),ie(t,e,["depthTextureView","description","handle","label","pipelineHash","pipelineSettings","replaceShaderCodeFunction"]),ZD(t,e)}var JD=J(yv,"vtkWebGPURenderEncoder"),ot={newInstance:JD,extend:yv};function eV(t,e){e.classHierarchy.push("vtkWebGPUSampler"),t.create=(n,r={})=>{e.device=n,e.options.addressModeU=r.addressModeU?r.addressModeU:"clamp-to-edge",e.options.addressModeV=r.addressModeV?r.addressModeV:"clamp-to-edge",e.options.addressModeW=r.addressModeW?r.addressModeW:"clamp-to-edge",e.options.magFilter=r.magFilter?r.magFilter:"nearest",e.options.minFilter=r.minFilter?r.minFilter:"nearest",e.options.mipmapFilter=r.mipmapFilter?r.mipmapFilter:"nearest",e.options.label=e.label,e.handle=e.device.getHandle().createSampler(e.options),e.bindGroupTime.modified()},t.getShaderCode=(n,r)=>`@binding(${n}) @group(${r}) var ${e.label}: sampler;`,t.getBindGroupEntry=()=>({resource:e.handle})}var tV={device:null,handle:null,label:null,options:null};function mv(t,e,n={}){Object.assign(e,tV,n),O.obj(t,e),e.options={},e.bindGroupLayoutEntry={visibility:GPUShaderStage.VERTEX|GPUShaderStage.FRAGMENT,sampler:{}},e.bindGroupTime={},O.obj(e.bindGroupTime,{mtime:0}),O.get(t,e,["bindGroupTime","handle","options"]),O.setGet(t,e,["bindGroupLayoutEntry","device","label"]),eV(t,e)}var nV=O.newInstance(mv),br={newInstance:nV,extend:mv};function rV(t,e){return t==="unfilterable-float"&&e?.hasFeature("float32-filterable")?"float":t}function aV(t,e){e.classHierarchy.push("vtkWebGPUTextureView"),t.create=(n,r)=>{e.texture=n,e.options=r,e.options.dimension=e.options.dimension||"2d",e.options.label=e.label,e.textureHandle=n.getHandle(),e.handle=e.textureHandle.createView(e.options),e.bindGroupLayoutEntry.texture.viewDimension=e.options.dimension;let a=Fe.getDetailsFromTextureFormat(e.texture.getFormat());e.bindGroupLayoutEntry.texture.sampleType=rV(a.sampleType,e.texture.getDevice())},t.createFromTextureHandle=(n,r)=>{e.texture=null,e.options=r,e.options.dimension=e.options.dimension||"2d",e.options.label=e.label,e.textureHandle=n,e.handle=e.textureHandle.createView(e.options),e.bindGroupLayoutEntry.texture.viewDimension=e.options.dimension;let a=Fe.getDetailsFromTextureFormat(r.format);e.bindGroupLayoutEntry.texture.sampleType=a.sampleType,e.bindGroupTime.modified()},t.getBindGroupEntry=()=>({resource:t.getHandle()}),t.getShaderCode=(n,r)=>{let a="f32";e.bindGroupLayoutEntry.texture.sampleType==="sint"?a="i32":e.bindGroupLayoutEntry.texture.sampleType==="uint"&&(a="u32");let i=`@binding(${n}) @group(${r}) var ${e.label}: texture_${e.options.dimension}<${a}>;`;return e.bindGroupLayoutEntry.texture.sampleType==="depth"&&(i=`@binding(${n}) @group(${r}) var ${e.label}: texture_depth_${e.options.dimension};`),i},t.addSampler=(n,r)=>{let a=br.newInstance({label:`${e.label}Sampler`});a.create(n,r),t.setSampler(a)},t.getBindGroupTime=()=>(e.texture&&e.texture.getHandle()!==e.textureHandle&&(e.textureHandle=e.texture.getHandle(),e.handle=e.textureHandle.createView(e.options),e.bindGroupTime.modified()),e.bindGroupTime),t.getHandle=()=>(e.texture&&e.texture.getHandle()!==e.textureHandle&&(e.textureHandle=e.texture.getHandle(),e.handle=e.textureHandle.createView(e.options),e.bindGroupTime.modified()),e.handle)}var iV={texture:null,handle:null,sampler:null,label:null};function Sv(t,e,n={}){Object.assign(e,iV,n),O.obj(t,e),e.bindGroupLayoutEntry={visibility:GPUShaderStage.VERTEX|GPUShaderStage.FRAGMENT,texture:{sampleType:"float",viewDimension:"2d"}},e.bindGroupTime={},O.obj(e.bindGroupTime,{mtime:0}),O.get(t,e,["bindGroupTime","texture"]),O.setGet(t,e,["bindGroupLayoutEntry","label","sampler"]),aV(t,e)}var sV=O.newInstance(Sv),hs={newInstance:sV,extend:Sv};var{vtkErrorMacro:Ma}=O;function oV(t,e){e.classHierarchy.push("vtkWebGPUTexture");let n=(o,c,f)=>Math.floor(Math.log2(Math.max(o,c,f))),r=o=>o.endsWith("16float"),a=(o,c)=>{if(r(e.format))return"Uint16Array";if(e.format.endsWith("snorm")){if(o.elementSize===1)return"Int8Array";if(o.elementSize===2)return"Int16Array"}if(o.sampleType==="sint"){if(o.elementSize===1)return"Int8Array";if(o.elementSize===2)return"Int16Array";if(o.elementSize===4)return"Int32Array"}else if(o.sampleType==="unfilterable-float"){if(o.elementSize===4)return"Float32Array"}else{if(o.elementSize===1)return"Uint8Array";if(o.elementSize===2)return"Uint16Array";if(o.elementSize===4)return"Uint32Array"}return c},i=(o,c,f,u,g=null)=>{let l=Fe.getDetailsFromTextureFormat(e.format),h=c*l.numComponents,y=h*f*u,p=r(e.format);if(!o?.length&&y>0)return Ma("Texture upload failed: missing nativeArray data."),null;let v=g?.width??c,x=g?.height??f,S=g?.depth??u,T=g?.x??0,d=g?.y??0,C=g?.z??0;if(T<0||d<0||C<0||T+c>v||d+f>x||C+u>S)return Ma("Texture upload failed: invalid source layout."),null;let w=(((C+u-1)*x+d+f-1)*v+T+c)*l.numComponents;if(o.length<w)return Ma(`Texture upload failed: expected ${w} values but received ${o.length}.`),null;let D=o;!g&&o.length>y&&(D=o.subarray(0,y));let m=D.BYTES_PER_ELEMENT||l.elementSize,M=c*l.stride,R=256*Math.floor((M+255)/256),E=a(l,D.constructor.name),V=R/(p?2:O.newTypedArray(E,0).BYTES_PER_ELEMENT),N=h*m;if(!(g||p||D.constructor.name!==E||N!==R))return{data:D,bytesPerRow:R};let _=f*u,L=O.newTypedArray(E,V*_),B=v*l.numComponents,b=x*B;if(p)for(let G=0;G<u;G++){let U=(C+G)*b;for(let z=0;z<f;z++){let A=G*f+z,Q=U+(d+z)*B+T*l.numComponents,X=A*V;for(let te=0;te<h;te++)L[X+te]=Xt.toHalf(D[Q+te])}}else if(!g&&V===h)L.set(D);else for(let G=0;G<u;G++){let U=(C+G)*b;for(let z=0;z<f;z++){let A=G*f+z,Q=U+(d+z)*B+T*l.numComponents,X=A*V;L.set(D.subarray(Q,Q+h),X)}}return{data:L,bytesPerRow:R}},s=(o,c,f,u,g,l)=>o<0||c<0||f<0||u<=0||g<=0||l<=0?(Ma(`Texture upload failed: invalid write region origin=(${o}, ${c}, ${f}) size=(${u}, ${g}, ${l}).`),!1):o+u>e.width||c+g>e.height||f+l>e.depth?(Ma(`Texture upload failed: write region origin=(${o}, ${c}, ${f}) size=(${u}, ${g}, ${l}) exceeds texture extent=(${e.width}, ${e.height}, ${e.depth}).`),!1):!0;t.create=(o,c)=>{e._device=o,e.width=c.width,e.height=c.height,e.depth=c.depth?c.depth:1,c.dimension?e.dimension=c.dimension:e.dimension=e.depth===1?"2d":"3d",e.format=c.format?c.format:"rgba8unorm",e.mipLevel=c.mipLevel?Math.min(c.mipLevel,n(e.width,e.height,e.depth)):0,e.sampleCount=c.sampleCount?c.sampleCount:1,e.usage=c.usage?c.usage:GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.COPY_DST,e.handle=e._device.getHandle().createTexture({size:[e.width,e.height,e.depth],format:e.format,usage:e.usage,label:e.label,dimension:e.dimension,sampleCount:e.sampleCount,mipLevelCount:e.mipLevel+1})},t.destroy=()=>{e.handle?.destroy?.(),e.handle=null,e.ready=!1},t.assignFromHandle=(o,c,f)=>{e._device=o,e.handle=c,e.width=f.width,e.height=f.height,e.depth=f.depth?f.depth:1,f.dimension?e.dimension=f.dimension:e.dimension=e.depth===1?"2d":"3d",e.format=f.format?f.format:"rgba8unorm",e.usage=f.usage?f.usage:GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.COPY_DST},t.writeImageData=o=>{let c=[],f=p=>{let v=o.originZ??0,x=o.depth??1;e._device.getHandle().queue.copyExternalImageToTexture({source:p,flipY:o.flip},{texture:e.handle,premultipliedAlpha:!1,mipLevel:0,origin:{x:0,y:0,z:v}},[p.width,p.height,x]),e.dimension==="2d"&&x===1&&e.mipLevel>0&&vn.generateMipmaps(e._device.getHandle(),e.handle,e.mipLevel+1),e.ready=!0};if(o.canvas){f(o.canvas);return}if(o.imageBitmap){o.width=o.imageBitmap.width,o.height=o.imageBitmap.height,o.depth=1,o.format="rgba8unorm",o.flip=!0,f(o.imageBitmap);return}if(o.jsImageData){o.width=o.jsImageData.width,o.height=o.jsImageData.height,o.depth=1,o.format="rgba8unorm",o.flip=!0,f(o.jsImageData);return}if(o.image){o.width=o.image.width,o.height=o.image.height,o.depth=1,o.format="rgba8unorm",o.flip=!0,f(o.image);return}o.nativeArray&&(c=o.nativeArray);let u=o.width??e.width,g=o.height??e.height,l=o.depth??1,h=i(c,u,g,l);if(!h)return;let y=h.data;e._device.getHandle().queue.writeTexture({texture:e.handle,mipLevel:0,origin:{x:0,y:0,z:o.originZ??0}},y,{offset:0,bytesPerRow:h.bytesPerRow,rowsPerImage:g},{width:u,height:g,depthOrArrayLayers:l}),e.dimension==="2d"&&l===1&&e.mipLevel>0&&vn.generateMipmaps(e._device.getHandle(),e.handle,e.mipLevel+1),e.ready=!0},t.writeSubImageData=o=>{let c=o.x??0,f=o.y??0,u=o.z??0,g=o.width??e.width-c,l=o.height??e.height-f,h=o.depth??e.depth-u,y=o.nativeArray||[];if(!s(c,f,u,g,l,h))return!1;let p=i(y,g,l,h,o.sourceLayout);return p?(e._device.getHandle().queue.writeTexture({texture:e.handle,mipLevel:0,origin:{x:c,y:f,z:u}},p.data,{offset:0,bytesPerRow:p.bytesPerRow,rowsPerImage:l},{width:g,height:l,depthOrArrayLayers:h}),o.deferMipmaps||t.generateMipmaps(),e.ready=!0,!0):!1},t.generateMipmaps=()=>{t.getDimensionality()!==3&&e.mipLevel>0&&vn.generateMipmaps(e._device.getHandle(),e.handle,e.mipLevel+1)},t.getScale=()=>{if(e.format.endsWith("16unorm"))return 65535;if(e.format.endsWith("16snorm"))return 32767;let o=Fe.getDetailsFromTextureFormat(e.format);return(o.sampleType==="float"||o.sampleType==="unfilterable-float")&&o.elementSize>=2?1:255},t.getNumberOfComponents=()=>Fe.getDetailsFromTextureFormat(e.format).numComponents,t.getDimensionality=()=>{let o=0;return e.width>1&&o++,e.height>1&&o++,e.depth>1&&o++,o},t.resizeToMatch=o=>{(o.getWidth()!==e.width||o.getHeight()!==e.height||o.getDepth()!==e.depth)&&(e.width=o.getWidth(),e.height=o.getHeight(),e.depth=o.getDepth(),e.handle=e._device.getHandle().createTexture({size:[e.width,e.height,e.depth],dimension:e.dimension,format:e.format,usage:e.usage,label:e.label,sampleCount:e.sampleCount}))},t.resize=(o,c,f=1)=>{(o!==e.width||c!==e.height||f!==e.depth)&&(e.width=o,e.height=c,e.depth=f,e.handle=e._device.getHandle().createTexture({size:[e.width,e.height,e.depth],dimension:e.dimension,format:e.format,usage:e.usage,label:e.label,sampleCount:e.sampleCount}))},t.createView=(o,c={})=>{c.dimension||(e.dimension==="3d"?c.dimension="3d":e.depth===1?c.dimension="2d":c.dimension="2d-array");let f=hs.newInstance({label:o});return f.create(t,c),f}}var cV={_device:null,dimension:"2d",handle:null,buffer:null,ready:!1,label:null,sampleCount:1};function Cv(t,e,n={}){Object.assign(e,cV,n),O.obj(t,e),O.get(t,e,["dimension","handle","ready","width","height","depth","format","mipLevel","usage","sampleCount"]),O.setGet(t,e,["_device","label"]),oV(t,e)}var fV=O.newInstance(Cv),Qe={newInstance:fV,extend:Cv};function uV(t,e){e.classHierarchy.push("vtkWebGPUOpaquePass"),t.traverse=(n,r)=>{if(e.deleted)return;e._currentParent=r;let a=r.getDevice(),i=Math.max(1,r.getMultiSample?.()??1);if(e.renderEncoder&&e._currentSampleCount!==i&&(e.renderEncoder=null,e.colorTexture=null,e.depthTexture=null,e.resolveColorTexture=null,e._resolveColorTextureView=null),e.renderEncoder){let s=r.getCanvas().width,o=r.getCanvas().height;e.colorTexture.resize(s,o),e.depthTexture.resize(s,o),e.resolveColorTexture&&e.resolveColorTexture.resize(s,o)}else{t.createRenderEncoder(i),e._currentSampleCount=i;let s=r.getCanvas().width,o=r.getCanvas().height;e.colorTexture=Qe.newInstance({label:"opaquePassColor"}),e.colorTexture.create(a,{width:s,height:o,format:"rgba16float",sampleCount:i,usage:GPUTextureUsage.RENDER_ATTACHMENT|(i===1?GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.COPY_SRC:0)});let c=e.colorTexture.createView("opaquePassColorTexture");if(e.renderEncoder.setColorTextureView(0,c),i>1){e.resolveColorTexture=Qe.newInstance({label:"opaquePassResolveColor"}),e.resolveColorTexture.create(a,{width:s,height:o,format:"rgba16float",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.COPY_SRC}),e._resolveColorTextureView=e.resolveColorTexture.createView("opaquePassColorTexture");let u=e._resolveColorTextureView;e.renderEncoder.setResolveTextureView(0,u)}e.depthFormat="depth32float",e.depthTexture=Qe.newInstance({label:"opaquePassDepth"}),e.depthTexture.create(a,{width:s,height:o,format:e.depthFormat,sampleCount:i,usage:GPUTextureUsage.RENDER_ATTACHMENT|(i===1?GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.COPY_SRC:0)});let f=e.depthTexture.createView("opaquePassDepthTexture");e.renderEncoder.setDepthTextureView(f)}e.renderEncoder.attachTextureViews(),t.setCurrentOperation("opaquePass"),n.setRenderEncoder(e.renderEncoder),n.traverse(t)},t.getColorTextureView=()=>e._resolveColorTextureView?e._resolveColorTextureView:e.renderEncoder.getColorTextureViews()[0],t.getDepthTextureView=()=>e.renderEncoder.getDepthTextureView(),t.createRenderEncoder=(n=1)=>{if(e.renderEncoder=ot.newInstance({label:"OpaquePass"}),e.renderEncoder.setPipelineHash(`op${n}`),n>1){let r=e.renderEncoder.getPipelineSettings();r.multisample={count:n},e.renderEncoder.setPipelineSettings(r)}},t.releaseGraphicsResources=()=>{e.renderEncoder=null,e.colorTexture=null,e.depthTexture=null}}var lV={renderEncoder:null,colorTexture:null,depthTexture:null,resolveColorTexture:null};function wv(t,e,n={}){Object.assign(e,lV,n),Ze.extend(t,e,n),O.get(t,e,["colorTexture","depthTexture","resolveColorTexture"]),uV(t,e)}var gV=O.newInstance(wv,"vtkWebGPUOpaquePass"),Ov={newInstance:gV,extend:wv};var pV=`
//VTK::Mapper::Dec

//VTK::TCoord::Dec

//VTK::RenderEncoder::Dec

//VTK::IOStructs::Dec

@fragment
fn main(
//VTK::IOStructs::Input
)
//VTK::IOStructs::Output
{
  var output: fragmentOutput;

  var tcoord: vec2<i32> = vec2<i32>(i32(input.fragPos.x), i32(input.fragPos.y));
  var reveal: f32 = textureLoad(oitpAccumTexture, tcoord, 0).r;
  if (reveal == 1.0) { discard; }
  var tcolor: vec4<f32> = textureLoad(oitpColorTexture, tcoord, 0);
  var total: f32 = max(tcolor.a, 0.01);
  var computedColor: vec4<f32> = vec4<f32>(tcolor.r/total, tcolor.g/total, tcolor.b/total, 1.0 - reveal);

  //VTK::RenderEncoder::Impl
  return output;
}
`;function hV(t,e){e.classHierarchy.push("vtkWebGPUOrderIndependentTranslucentPass"),t.traverse=(n,r)=>{if(e.deleted)return;e._currentParent=r;let a=r.getDevice(),i=Math.max(1,r.getMultiSample?.()??1);if(e.translucentRenderEncoder&&e._currentSampleCount!==i&&(e.translucentRenderEncoder=null,e.translucentColorTexture=null,e.translucentAccumulateTexture=null,e.translucentResolveColorTexture=null,e.translucentResolveAccumulateTexture=null,e._resolveColorView=null,e._resolveAccumulateView=null),e.translucentRenderEncoder)e.translucentColorTexture.resizeToMatch(e.colorTextureView.getTexture()),e.translucentAccumulateTexture.resizeToMatch(e.colorTextureView.getTexture()),e.translucentResolveColorTexture&&(e.translucentResolveColorTexture.resizeToMatch(e.colorTextureView.getTexture()),e.translucentResolveAccumulateTexture.resizeToMatch(e.colorTextureView.getTexture()));else{t.createRenderEncoder(i),t.createFinalEncoder(),e._currentSampleCount=i,e.translucentColorTexture=Qe.newInstance({label:"translucentPassColor"}),e.translucentColorTexture.create(a,{width:r.getCanvas().width,height:r.getCanvas().height,format:"rgba16float",sampleCount:i,usage:GPUTextureUsage.RENDER_ATTACHMENT|(i===1?GPUTextureUsage.TEXTURE_BINDING:0)});let s=e.translucentColorTexture.createView("oitpColorTexture");e.translucentRenderEncoder.setColorTextureView(0,s),i>1&&(e.translucentResolveColorTexture=Qe.newInstance({label:"translucentPassResolveColor"}),e.translucentResolveColorTexture.create(a,{width:r.getCanvas().width,height:r.getCanvas().height,format:"rgba16float",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.TEXTURE_BINDING}),e._resolveColorView=e.translucentResolveColorTexture.createView("oitpColorTexture"),e.translucentRenderEncoder.setResolveTextureView(0,e._resolveColorView)),e.translucentAccumulateTexture=Qe.newInstance({label:"translucentPassAccumulate"}),e.translucentAccumulateTexture.create(a,{width:r.getCanvas().width,height:r.getCanvas().height,format:"r16float",sampleCount:i,usage:GPUTextureUsage.RENDER_ATTACHMENT|(i===1?GPUTextureUsage.TEXTURE_BINDING:0)});let o=e.translucentAccumulateTexture.createView("oitpAccumTexture");e.translucentRenderEncoder.setColorTextureView(1,o),i>1&&(e.translucentResolveAccumulateTexture=Qe.newInstance({label:"translucentPassResolveAccumulate"}),e.translucentResolveAccumulateTexture.create(a,{width:r.getCanvas().width,height:r.getCanvas().height,format:"r16float",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.TEXTURE_BINDING}),e._resolveAccumulateView=e.translucentResolveAccumulateTexture.createView("oitpAccumTexture"),e.translucentRenderEncoder.setResolveTextureView(1,e._resolveAccumulateView)),e.fullScreenQuad=Rn.newInstance(),e.fullScreenQuad.setDevice(r.getDevice()),e.fullScreenQuad.setPipelineHash("oitpfsq");let c=i>1?[e._resolveColorView,e._resolveAccumulateView]:e.translucentRenderEncoder.getColorTextureViews();e.fullScreenQuad.setTextureViews(c),e.fullScreenQuad.setFragmentShaderTemplate(pV)}e.translucentRenderEncoder.setDepthTextureView(e.depthTextureView),e.translucentRenderEncoder.attachTextureViews(),t.setCurrentOperation("translucentPass"),n.setOpaqueColorTextureView(e.colorTextureView),n.setRenderEncoder(e.translucentRenderEncoder),n.traverse(t),t.finalPass(r,n)},t.finalPass=(n,r)=>{e.translucentFinalEncoder.setColorTextureView(0,e.colorTextureView),e.translucentFinalEncoder.attachTextureViews(),e.translucentFinalEncoder.begin(n.getCommandEncoder()),r.scissorAndViewport(e.translucentFinalEncoder),e.fullScreenQuad.prepareAndDraw(e.translucentFinalEncoder),e.translucentFinalEncoder.end()},t.getTextures=()=>[e.translucentColorTexture,e.translucentAccumulateTexture],t.createRenderEncoder=(n=1)=>{e.translucentRenderEncoder=ot.newInstance({label:"translucentRender"});let r=e.translucentRenderEncoder.getDescription();r.colorAttachments=[{view:void 0,clearValue:[0,0,0,0],loadOp:"clear",storeOp:"store"},{view:void 0,clearValue:[1,0,0,0],loadOp:"clear",storeOp:"store"}],r.depthStencilAttachment={view:void 0,depthLoadOp:"load",depthStoreOp:"store"},e.translucentRenderEncoder.setReplaceShaderCodeFunction(a=>{let i=a.getShaderDescription("fragment");i.addOutput("vec4<f32>","outColor"),i.addOutput("f32","outAccum"),i.addBuiltinInput("vec4<f32>","@builtin(position) fragPos");let s=i.getCode();s=Te.substitute(s,"//VTK::RenderEncoder::Impl",["var w: f32 = computedColor.a * pow(0.1 + input.fragPos.z, 2.0);","output.outColor = vec4<f32>(computedColor.rgb*w, w);","output.outAccum = computedColor.a;"]).result,i.setCode(s)}),e.translucentRenderEncoder.setPipelineHash(`oitpr${n}`),e.translucentRenderEncoder.setPipelineSettings({primitive:{cullMode:"none"},...n>1?{multisample:{count:n}}:{},depthStencil:{depthWriteEnabled:!1,depthCompare:"greater-equal",format:"depth32float"},fragment:{targets:[{format:"rgba16float",blend:{color:{srcFactor:"one",dstFactor:"one"},alpha:{srcFactor:"one",dstFactor:"one"}}},{format:"r16float",blend:{color:{srcFactor:"zero",dstFactor:"one-minus-src"},alpha:{srcFactor:"one",dstFactor:"one-minus-src-alpha"}}}]}})},t.createFinalEncoder=()=>{e.translucentFinalEncoder=ot.newInstance({label:"translucentFinal"}),e.translucentFinalEncoder.setDescription({colorAttachments:[{view:null,loadOp:"load",storeOp:"store"}]}),e.translucentFinalEncoder.setReplaceShaderCodeFunction(n=>{let r=n.getShaderDescription("fragment");r.addOutput("vec4<f32>","outColor"),r.addBuiltinInput("vec4<f32>","@builtin(position) fragPos");let a=r.getCode();a=Te.substitute(a,"//VTK::RenderEncoder::Impl",["output.outColor = vec4<f32>(computedColor.rgb, computedColor.a);"]).result,r.setCode(a)}),e.translucentFinalEncoder.setPipelineHash("oitpf"),e.translucentFinalEncoder.setPipelineSettings({primitive:{cullMode:"none"},fragment:{targets:[{format:"rgba16float",blend:{color:{srcFactor:"src-alpha",dstFactor:"one-minus-src-alpha"},alpha:{srcFactor:"one",dstFactor:"one-minus-src-alpha"}}}]}})},t.releaseGraphicsResources=()=>{e.translucentRenderEncoder=null,e.translucentFinalEncoder=null,e.translucentColorTexture=null,e.translucentAccumulateTexture=null,e.fullScreenQuad=null}}var vV={colorTextureView:null,depthTextureView:null,fullScreenQuad:null,translucentResolveColorTexture:null,translucentResolveAccumulateTexture:null};function Rv(t,e,n={}){Object.assign(e,vV,n),Ze.extend(t,e,n),O.setGet(t,e,["colorTextureView","depthTextureView"]),O.get(t,e,["fullScreenQuad","translucentResolveAccumulateTexture","translucentResolveColorTexture"]),hV(t,e)}var dV=O.newInstance(Rv,"vtkWebGPUOrderIndependentTranslucentPass"),Mv={newInstance:dV,extend:Rv};var{Representation:Ev}=_t,{PrimitiveTypes:En}=On,TV=class{constructor(){this.keys=new Uint32Array(10),this.values=new Uint32Array(10),this.count=0}clear(){this.count=0}has(t){for(let e=0;e<this.count;e++)if(this.keys[e]===t)return!0;return!1}get(t){for(let e=0;e<this.count;e++)if(this.keys[e]===t)return this.values[e]}set(t,e){this.count<9&&(this.keys[this.count]=t,this.values[this.count++]=e)}};function xV(t){switch(t){case En.Points:return"points";case En.Lines:return"lines";case En.Triangles:case En.TriangleEdges:return"polys";case En.TriangleStripEdges:case En.TriangleStrips:return"strips";default:return""}}function vs(t,e,n){let r=t.pointIdToFlatId[e];return r<0&&(r=t.flatId,t.pointIdToFlatId[e]=r,t.flatIdToPointId[t.flatId]=e,t.flatIdToCellId[t.flatId]=n,t.flatId++),r}function yV(t,e,n){let r=t.length;for(let s=0;s<r;s++){let o=t[s];if(n.cellProvokedMap.has(o)){n.ibo[n.iboId++]=n.cellProvokedMap.get(o);for(let c=s+1;c<s+r;c++){o=t[c%r];let f=vs(n,o,e);n.ibo[n.iboId++]=f}return}}for(let s=0;s<r;s++){let o=t[s];if(!n.provokedPointIds[o]){let c=vs(n,o,e);n.provokedPointIds[o]=1,n.cellProvokedMap.set(o,c),n.flatIdToCellId[c]=e,n.ibo[n.iboId++]=c;for(let f=s+1;f<s+r;f++)o=t[f%r],c=vs(n,o,e),n.ibo[n.iboId++]=c;return}}let a=t[0],i=n.flatId;n.cellProvokedMap.set(a,i),n.flatIdToPointId[n.flatId]=a,n.flatIdToCellId[n.flatId]=e,n.flatId++,n.ibo[n.iboId++]=i;for(let s=1;s<r;s++)a=t[s],i=vs(n,a,e),n.ibo[n.iboId++]=i}function mV(t,e,n){let r=t.length;n.iboSize+=r;for(let a=0;a<r;a++){let i=t[a];if(n.cellProvokedMap.has(i))return}for(let a=0;a<r;a++){let i=t[a];if(!n.provokedPointIds[i]){n.provokedPointIds[i]=1,n.cellProvokedMap.set(i,1);return}}n.cellProvokedMap.set(t[0],1),n.extraPoints++}function SV(t,e,n){n.iboSize+=t.length,n.primitiveCount++}function CV(t,e,n){for(let r=0;r<t.length;r++)n.ibo[n.iboId++]=t[r];n.primitiveToCellId&&(n.primitiveToCellId[n.primitiveCount]=e),n.primitiveCount++}var Vt,Dv=new Uint32Array(1),mt=new Uint32Array(2),Mn=new Uint32Array(3),Bc={anythingToPoints(t,e,n,r,a){for(let i=0;i<t;++i)Dv[0]=e[n+i],Vt(Dv,r,a)},linesToWireframe(t,e,n,r,a){for(let i=0;i<t-1;++i)mt[0]=e[n+i],mt[1]=e[n+i+1],Vt(mt,r,a)},polysToWireframe(t,e,n,r,a){if(t>2)for(let i=0;i<t;++i)mt[0]=e[n+i],mt[1]=e[n+(i+1)%t],Vt(mt,r,a)},stripsToWireframe(t,e,n,r,a){if(t>2){for(let i=0;i<t-1;++i)mt[0]=e[n+i],mt[1]=e[n+i+1],Vt(mt,r,a);for(let i=0;i<t-2;i++)mt[0]=e[n+i],mt[1]=e[n+i+2],Vt(mt,r,a)}},polysToSurface(t,e,n,r,a){for(let i=0;i<t-2;i++)Mn[0]=e[n],Mn[1]=e[n+i+1],Mn[2]=e[n+i+2],Vt(Mn,r,a)},stripsToSurface(t,e,n,r,a){for(let i=0;i<t-2;i++)Mn[0]=e[n+i],Mn[1]=e[n+i+1+i%2],Mn[2]=e[n+i+1+(i+1)%2],Vt(Mn,r,a)}};function Vv(t,e){let n=xV(t);return e===Ev.POINTS||t===En.Points?Bc.anythingToPoints:e===Ev.WIREFRAME||t===En.Lines?Bc[`${n}ToWireframe`]:Bc[`${n}ToSurface`]}function wV(t,e){e.classHierarchy.push("vtkWebGPUIndexBuffer"),t.buildPointIdIndexBuffer=n=>{let r=n.cells.getData(),a=r.length,i=n.cellOffset||0,s=n.numberOfPoints,o=Vv(n.primitiveType,n.representation),c={iboSize:0,iboId:0,primitiveCount:0,primitiveToCellId:null};Vt=SV;let f=!0,u=i;for(let g=0;g<a;){let l=c.primitiveCount;o(r[g],r,g+1,u,c),c.primitiveCount-l!==1&&(f=!1),g+=r[g]+1,u++}s<=65535?(c.ibo=new Uint16Array(c.iboSize),n.format="uint16"):(c.ibo=new Uint32Array(c.iboSize),n.format="uint32"),f||(c.primitiveToCellId=new Uint32Array(c.primitiveCount)),Vt=CV,c.primitiveCount=0,u=i;for(let g=0;g<a;)o(r[g],r,g+1,u,c),g+=r[g]+1,u++;n.nativeArray=c.ibo,e.flatIdToPointId=null,e.flatIdToCellId=null,e.flatSize=s,e.indexCount=c.iboId,e.primitiveToCellId=c.primitiveToCellId},t.buildFlatIndexBuffer=n=>{let r=n.cells,a=n.primitiveType,i=n.representation,s=n.cellOffset,o=r.getData(),c=o.length,f=n.numberOfPoints,u={provokedPointIds:new Uint8Array(f),extraPoints:0,iboSize:0,flatId:0,iboId:0,cellProvokedMap:new TV},g=Vv(a,i);Vt=mV;let l=s||0;for(let h=0;h<c;)u.cellProvokedMap.clear(),g(o[h],o,h+1,l,u),h+=o[h]+1,l++;f<=65535?u.flatIdToPointId=new Uint16Array(f+u.extraPoints):u.flatIdToPointId=new Uint32Array(f+u.extraPoints),f+u.extraPoints<=32767?u.pointIdToFlatId=new Int16Array(f):u.pointIdToFlatId=new Int32Array(f),f+u.extraPoints<=65535?(u.ibo=new Uint16Array(u.iboSize),n.format="uint16"):(u.ibo=new Uint32Array(u.iboSize),n.format="uint32"),l<=65535?u.flatIdToCellId=new Uint16Array(f+u.extraPoints):u.flatIdToCellId=new Uint32Array(f+u.extraPoints),u.pointIdToFlatId.fill(-1),u.provokedPointIds.fill(0),Vt=yV,l=s||0;for(let h=0;h<c;)u.cellProvokedMap.clear(),g(o[h],o,h+1,l,u),h+=o[h]+1,l++;delete u.provokedPointIds,delete u.pointIdToFlatId,n.nativeArray=u.ibo,e.flatIdToPointId=u.flatIdToPointId,e.flatIdToCellId=u.flatIdToCellId,e.flatSize=u.flatId,e.indexCount=u.iboId,e.primitiveToCellId=null},t.buildIndexBuffer=n=>{n.pointIds?t.buildPointIdIndexBuffer(n):t.buildFlatIndexBuffer(n)}}var OV={flatIdToPointId:null,flatIdToCellId:null,flatSize:0,indexCount:0,primitiveToCellId:null,primitiveToCellIdBuffer:null};function Lv(t,e,n={}){Object.assign(e,OV,n),Pt.extend(t,e,n),O.setGet(t,e,["flatIdToPointId","flatIdToCellId","flatSize","indexCount","primitiveToCellId","primitiveToCellIdBuffer"]),wV(t,e)}var RV=O.newInstance(Lv),_v={newInstance:RV,extend:Lv,...On};var{BufferUsage:ct}=On,{vtkErrorMacro:MV}=Ce,{VtkDataTypes:nr}=Y,EV={};function Fv(t){let e;switch(t.getDataType()){case nr.UNSIGNED_CHAR:e="uint8";break;case nr.FLOAT:e="float32";break;case nr.UNSIGNED_INT:e="uint32";break;case nr.INT:e="sint32";break;case nr.DOUBLE:e="float32";break;case nr.UNSIGNED_SHORT:e="uint16";break;case nr.SHORT:e="sint16";break;default:e="float32";break}switch(t.getNumberOfComponents()){case 2:e+="x2";break;case 3:e.includes("32")||MV(`unsupported x3 type for ${e}`),e+="x3";break;case 4:e+="x4";break;default:break}return e}function Nv(t,e,n,r,a){let i={},s=t.getFlatSize();if(!s)return i;let o=[0,0,0,0];a.shift&&(a.shift.length?o=a.shift:o.fill(a.shift));let c=[1,1,1,1];a.scale&&(a.scale.length?c=a.scale:c.fill(a.scale));let f=Object.prototype.hasOwnProperty.call(a,"packExtra")?a.packExtra:!1,u,g=0,l=cr(r,s*(n+(f?1:0))),h=t.getFlatIdToPointId(),y=0;if(a.cellData&&(h=t.getFlatIdToCellId(),y=a.cellOffset||0),n===1?u=function(v){l[g++]=c[0]*e[v]+o[0]}:n===2?u=function(v){l[g++]=c[0]*e[v]+o[0],l[g++]=c[1]*e[v+1]+o[1]}:n===3&&!f?u=function(v){l[g++]=c[0]*e[v]+o[0],l[g++]=c[1]*e[v+1]+o[1],l[g++]=c[2]*e[v+2]+o[2]}:n===3&&f?u=function(v){l[g++]=c[0]*e[v]+o[0],l[g++]=c[1]*e[v+1]+o[1],l[g++]=c[2]*e[v+2]+o[2],l[g++]=c[3]*1+o[3]}:n===4&&(u=function(v){l[g++]=c[0]*e[v]+o[0],l[g++]=c[1]*e[v+1]+o[1],l[g++]=c[2]*e[v+2]+o[2],l[g++]=c[3]*e[v+3]+o[3]}),h)for(let p=0;p<s;p++){let v=n*(h[p]-y);u(v)}else for(let p=0;p<s;p++)u(n*p);return i.nativeArray=l,i}function DV(t,e,n,r){let a=[t[r*3]-t[n*3],t[r*3+1]-t[n*3+1],t[r*3+2]-t[n*3+2]],i=[t[e*3]-t[n*3],t[e*3+1]-t[n*3+1],t[e*3+2]-t[n*3+2]],s=[];return Ue(a,i,s),$e(s),s}function Bv(t,e){let n=e.getData(),r=t.getData();if(!r||!n)return null;let a=new Int8Array(t.getNumberOfCells()*4),i=r.length,s=0;for(let o=0;o<i;){let c=DV(n,r[o+1],r[o+2],r[o+3]);a[s++]=127*c[0],a[s++]=127*c[1],a[s++]=127*c[2],a[s++]=127,o+=r[o]+1}return a}function VV(t){switch(t.usage){case ct.Index:case ct.PointArray:case ct.NormalsFromPoints:break;default:return null}let e=`u${t.usage}`;return t.format&&(e+=`f${t.format}`),t.dataArray&&(e+=`d${t.dataArray.getMTime()}`),t.cells&&(e+=`c${t.cells.getMTime()}`),t.indexBuffer&&(e+=`i${t.indexBuffer.getMTime?.()??0}`),t.representation!==void 0&&(e+=`R${t.representation}`),t.primitiveType!==void 0&&(e+=`P${t.primitiveType}`),t.cellOffset!==void 0&&(e+=`O${t.cellOffset}`),t.cellData&&(e+="cd"),t.pointIds&&(e+="pi"),t.packExtra&&(e+="pe"),t.shift!==void 0&&(e+=`s${Array.isArray(t.shift)?t.shift.join():t.shift}`),t.scale!==void 0&&(e+=`S${Array.isArray(t.scale)?t.scale.join():t.scale}`),e}function LV(t,e){e.classHierarchy.push("vtkWebGPUBufferManager");function n(r){r.dataArray&&!r.nativeArray&&(r.nativeArray=r.dataArray.getData());let a,i;if(r.usage===ct.Index){a=_v.newInstance({label:r.label}),a.setDevice(e.device),i=GPUBufferUsage.INDEX|GPUBufferUsage.COPY_DST,a.buildIndexBuffer(r),a.createAndWrite(r.nativeArray,i),a.setArrayInformation([{format:r.format}]);let s=a.getPrimitiveToCellId();s?.length&&a.setPrimitiveToCellIdBuffer(n({usage:ct.Storage,nativeArray:s,label:"cellPrimitiveMap"}))}if(a||(a=Pt.newInstance({label:r.label}),a.setDevice(e.device)),r.usage===ct.UniformArray&&(i=GPUBufferUsage.UNIFORM|GPUBufferUsage.COPY_DST,a.createAndWrite(r.nativeArray,i)),r.usage===ct.Storage&&(i=GPUBufferUsage.STORAGE|GPUBufferUsage.COPY_DST,a.createAndWrite(r.nativeArray,i)),r.usage===ct.Texture&&(i=GPUBufferUsage.COPY_SRC,a.createAndWrite(r.nativeArray,i)),r.usage===ct.PointArray){i=GPUBufferUsage.VERTEX;let s=Fe.getNativeTypeFromBufferFormat(r.format),o=Nv(r.indexBuffer,r.dataArray.getData(),r.dataArray.getNumberOfComponents(),s,{packExtra:r.packExtra,shift:r.shift,scale:r.scale,cellData:r.cellData,cellOffset:r.cellOffset});a.createAndWrite(o.nativeArray,i),a.setStrideInBytes(Fe.getByteStrideFromBufferFormat(r.format));let c="perspective";r.cellData&&(c="flat"),a.setArrayInformation([{offset:0,format:r.format,interpolation:c}])}if(r.usage===ct.NormalsFromPoints){i=GPUBufferUsage.VERTEX;let s=Fe.getNativeTypeFromBufferFormat(r.format),o=Bv(r.cells,r.dataArray),c=Nv(r.indexBuffer,o,4,s,{cellData:!0,cellOffset:r.cellOffset});a.createAndWrite(c.nativeArray,i),a.setStrideInBytes(Fe.getByteStrideFromBufferFormat(r.format)),a.setArrayInformation([{offset:0,format:r.format,interpolation:"flat"}])}return r.usage===ct.RawVertex&&(i=GPUBufferUsage.VERTEX,a.createAndWrite(r.nativeArray,i),a.setStrideInBytes(Fe.getByteStrideFromBufferFormat(r.format)),a.setArrayInformation([{offset:0,format:r.format,interpolation:r.interpolation}])),a.setSourceTime(r.time),a}t.hasBuffer=r=>e.device.hasCachedObject(r),t.getBuffer=r=>{let a=r.hash??VV(r);return a?e.device.getCachedObject(a,n,r):n(r)},t.getStorageBuffer=(r,a,i)=>e.device.getCachedObject(r,()=>n({usage:ct.Storage,nativeArray:a(),label:i})),t.getStorageBufferForCellNormals=(r,a)=>t.getStorageBuffer(`cellNormals${r.getMTime()}P${a.getMTime()}`,()=>Bv(r,a),"cellNormals"),t.getBufferForPointArray=(r,a)=>{let i=Fv(r),s={hash:`${r.getMTime()}I${a.getMTime()}${i}`,usage:ct.PointArray,format:i,dataArray:r,indexBuffer:a};return t.getBuffer(s)},t.getBufferForCellArray=(r,a,i=0)=>{let s=Fv(r),o={hash:`cell${r.getMTime()}I${a.getMTime()}O${i}${s}`,usage:ct.PointArray,format:s,dataArray:r,indexBuffer:a,cellData:!0,cellOffset:i};return t.getBuffer(o)},t.getFullScreenQuadBuffer=()=>{if(e.fullScreenQuadBuffer)return e.fullScreenQuadBuffer;e.fullScreenQuadBuffer=Pt.newInstance(),e.fullScreenQuadBuffer.setDevice(e.device);let r=new Float32Array([-1,-1,0,1,-1,0,1,1,0,-1,-1,0,1,1,0,-1,1,0]);return e.fullScreenQuadBuffer.createAndWrite(r,GPUBufferUsage.VERTEX),e.fullScreenQuadBuffer.setStrideInBytes(12),e.fullScreenQuadBuffer.setArrayInformation([{offset:0,format:"float32x3"}]),e.fullScreenQuadBuffer}}var _V={device:null,fullScreenQuadBuffer:null};function Gv(t,e,n={}){Object.assign(e,_V,n),se(t,e),ie(t,e,["device"]),LV(t,e)}var FV=J(Gv),Dn={newInstance:FV,extend:Gv,...EV,...On};var{BufferUsage:NV}=Dn,{vtkErrorMacro:Gc}=O;function BV(t,e){e.classHierarchy.push("vtkWebGPUUniformBuffer");function n(r){if(e.UBO)return;t.sortBufferEntries(),t.createView("Float32Array");let a={nativeArray:e.Float32Array,usage:NV.UniformArray,label:e.label};e.UBO=r.getBufferManager().getBuffer(a),e.bindGroupTime.modified(),e.sendDirty=!1}t.addEntry=(r,a)=>{if(e._bufferEntryNames.has(r)){Gc(`entry named ${r} already exists`);return}e.sortDirty=!0,e._bufferEntryNames.set(r,e.bufferEntries.length),e.bufferEntries.push({name:r,type:a,sizeInBytes:Fe.getByteStrideFromShaderFormat(a),offset:-1,nativeType:Fe.getNativeTypeFromShaderFormat(a),packed:!1})},t.sortBufferEntries=()=>{if(!e.sortDirty)return;let r=0,a=[],i=4;for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];o.sizeInBytes%16===0&&(i=Math.max(16,i)),o.sizeInBytes%8===0&&(i=Math.max(8,i))}for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];o.packed===!1&&o.sizeInBytes%16===0&&(o.packed=!0,o.offset=r,a.push(o),r+=o.sizeInBytes)}for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];if(o.packed===!1&&o.sizeInBytes===12)for(let c=0;c<e.bufferEntries.length;c++){let f=e.bufferEntries[c];if(f.packed===!1&&f.sizeInBytes===4){o.packed=!0,o.offset=r,a.push(o),r+=o.sizeInBytes,f.packed=!0,f.offset=r,a.push(f),r+=f.sizeInBytes;break}}}for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];if(!o.packed&&o.sizeInBytes%8===0)for(let c=s+1;c<e.bufferEntries.length;c++){let f=e.bufferEntries[c];if(!f.packed&&f.sizeInBytes%8===0){o.packed=!0,o.offset=r,a.push(o),r+=o.sizeInBytes,f.packed=!0,f.offset=r,a.push(f),r+=f.sizeInBytes;break}}}for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];if(!o.packed&&o.sizeInBytes%8===0){let c=!1;for(let f=0;!c&&f<e.bufferEntries.length;f++){let u=e.bufferEntries[f];if(!u.packed&&u.sizeInBytes===4)for(let g=f+1;g<e.bufferEntries.length;g++){let l=e.bufferEntries[g];if(!l.packed&&l.sizeInBytes===4){o.packed=!0,o.offset=r,a.push(o),r+=o.sizeInBytes,u.packed=!0,u.offset=r,a.push(u),r+=u.sizeInBytes,l.packed=!0,l.offset=r,a.push(l),r+=l.sizeInBytes,c=!0;break}}}}}for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];!o.packed&&o.sizeInBytes>4&&(o.packed=!0,o.offset=r,a.push(o),r+=o.sizeInBytes)}for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];o.packed||(o.packed=!0,o.offset=r,a.push(o),r+=o.sizeInBytes)}e.bufferEntries=a,e._bufferEntryNames.clear();for(let s=0;s<e.bufferEntries.length;s++)e._bufferEntryNames.set(e.bufferEntries[s].name,s);e.sizeInBytes=r,e.sizeInBytes=i*Math.ceil(e.sizeInBytes/i),e.sortDirty=!1},t.sendIfNeeded=r=>{e.device=r,n(r),e.sendDirty&&(r.getHandle().queue.writeBuffer(e.UBO.getHandle(),0,e.arrayBuffer,0,e.sizeInBytes),e.sendDirty=!1),e.sendTime.modified()},t.createView=r=>{r in e||(e.arrayBuffer||(e.arrayBuffer=new ArrayBuffer(e.sizeInBytes)),e[r]=O.newTypedArray(r,e.arrayBuffer))},t.setValue=(r,a)=>{t.sortBufferEntries();let i=e._bufferEntryNames.get(r);if(i===void 0){Gc(`entry named ${r} not found in UBO`);return}let s=e.bufferEntries[i];t.createView(s.nativeType);let o=e[s.nativeType];s.lastValue!==a&&(o[s.offset/o.BYTES_PER_ELEMENT]=a,e.sendDirty=!0),s.lastValue=a},t.setArray=(r,a)=>{t.sortBufferEntries();let i=e._bufferEntryNames.get(r);if(i===void 0){Gc(`entry named ${r} not found in UBO`);return}let s=e.bufferEntries[i];t.createView(s.nativeType);let o=e[s.nativeType],c=!1;for(let f=0;f<a.length;f++)(!s.lastValue||s.lastValue[f]!==a[f])&&(o[s.offset/o.BYTES_PER_ELEMENT+f]=a[f],c=!0);c&&(e.sendDirty=!0,s.lastValue=[...a])},t.getBindGroupEntry=()=>(!e.UBO&&e.device&&n(e.device),{resource:{buffer:e.UBO.getHandle()}}),t.getSendTime=()=>e.sendTime.getMTime(),t.getShaderCode=(r,a)=>{t.sortBufferEntries();let i=[`struct ${e.label}Struct
{`];for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];i.push(`  ${o.name}: ${o.type},`)}return i.push(`};
@binding(${r}) @group(${a}) var<uniform> ${e.label}: ${e.label}Struct;`),i.join(`
`)},t.releaseGraphicsResources=()=>{e.UBO=null,e.bindGroupTime.modified(),e.sendDirty=!0}}var GV={bufferEntries:null,bufferEntryNames:null,sizeInBytes:0,label:null,bindGroupLayoutEntry:null,bindGroupEntry:null};function Uv(t,e,n={}){Object.assign(e,GV,n),O.obj(t,e),e._bufferEntryNames=new Map,e.bufferEntries=[],e.bindGroupLayoutEntry=e.bindGroupLayoutEntry||{buffer:{type:"uniform"}},e.sendTime={},O.obj(e.sendTime,{mtime:0}),e.bindGroupTime={},O.obj(e.bindGroupTime,{mtime:0}),e.sendDirty=!0,e.sortDirty=!0,O.get(t,e,["binding","bindGroupTime"]),O.setGet(t,e,["bindGroupLayoutEntry","device","label","sizeInBytes"]),BV(t,e)}var UV=O.newInstance(Uv,"vtkWebGPUUniformBuffer"),ds={newInstance:UV,extend:Uv};var{BufferUsage:kV}=Dn,{vtkErrorMacro:zr}=O;function bV(t,e){e.classHierarchy.push("vtkWebGPUStorageBuffer");function n(r){if(e._buffer)return;t.createView("Float32Array");let a={nativeArray:e.Float32Array,usage:kV.Storage,label:e.label};e._buffer=r.getBufferManager().getBuffer(a),e.bindGroupTime.modified()}t.addEntry=(r,a)=>{if(e._bufferEntryNames.has(r)){zr(`entry named ${r} already exists`);return}e._bufferEntryNames.set(r,e.bufferEntries.length);let i=Fe.getByteStrideFromShaderFormat(a);e.bufferEntries.push({name:r,type:a,sizeInBytes:i,offset:e.sizeInBytes,nativeType:Fe.getNativeTypeFromShaderFormat(a)}),e.sizeInBytes+=i},t.send=r=>{if(e.device=r,!e._buffer){n(r),e._sendTime.modified();return}r.getHandle().queue.writeBuffer(e._buffer.getHandle(),0,e.arrayBuffer,0,e.sizeInBytes*e.numberOfInstances),e._sendTime.modified()},t.createView=r=>{r in e||(e.arrayBuffer||(e.arrayBuffer=new ArrayBuffer(e.sizeInBytes*e.numberOfInstances)),e[r]=O.newTypedArray(r,e.arrayBuffer))},t.setValue=(r,a,i)=>{let s=e._bufferEntryNames.get(r);if(s===void 0){zr(`entry named ${r} not found in UBO`);return}let o=e.bufferEntries[s];t.createView(o.nativeType);let c=e[o.nativeType];c[(o.offset+a*e.sizeInBytes)/c.BYTES_PER_ELEMENT]=i},t.setArray=(r,a,i)=>{let s=e._bufferEntryNames.get(r);if(s===void 0){zr(`entry named ${r} not found in UBO`);return}let o=e.bufferEntries[s];t.createView(o.nativeType);let c=e[o.nativeType],f=(o.offset+a*e.sizeInBytes)/c.BYTES_PER_ELEMENT;for(let u=0;u<i.length;u++)c[f+u]=i[u]},t.setAllInstancesFromArray=(r,a)=>{let i=e._bufferEntryNames.get(r);if(i===void 0){zr(`entry named ${r} not found in UBO`);return}let s=e.bufferEntries[i];t.createView(s.nativeType);let o=e[s.nativeType],c=a.length/e.numberOfInstances;for(let f=0;f<e.numberOfInstances;f++){let u=(s.offset+f*e.sizeInBytes)/o.BYTES_PER_ELEMENT;for(let g=0;g<c;g++)o[u+g]=a[f*c+g]}},t.setAllInstancesFromArrayColorToFloat=(r,a)=>{let i=e._bufferEntryNames.get(r);if(i===void 0){zr(`entry named ${r} not found in UBO`);return}let s=e.bufferEntries[i];t.createView(s.nativeType);let o=e[s.nativeType],c=a.length/e.numberOfInstances;for(let f=0;f<e.numberOfInstances;f++){let u=(s.offset+f*e.sizeInBytes)/o.BYTES_PER_ELEMENT;for(let g=0;g<c;g++)o[u+g]=a[f*c+g]/255}},t.setAllInstancesFromArray3x3To4x4=(r,a)=>{let i=e._bufferEntryNames.get(r);if(i===void 0){zr(`entry named ${r} not found in UBO`);return}let s=e.bufferEntries[i];t.createView(s.nativeType);let o=e[s.nativeType],c=9;for(let f=0;f<e.numberOfInstances;f++){let u=(s.offset+f*e.sizeInBytes)/o.BYTES_PER_ELEMENT;for(let g=0;g<3;g++)for(let l=0;l<3;l++)o[u+g*4+l]=a[f*c+g*3+l]}},t.getSendTime=()=>e._sendTime.getMTime(),t.getShaderCode=(r,a)=>{let i=[`struct ${e.label}StructEntry
{`];for(let s=0;s<e.bufferEntries.length;s++){let o=e.bufferEntries[s];i.push(`  ${o.name}: ${o.type},`)}return i.push(`
};
struct ${e.label}Struct
{
  values: array<${e.label}StructEntry>,
};
@binding(${r}) @group(${a}) var<storage, read> ${e.label}: ${e.label}Struct;
`),i.join(`
`)},t.getBindGroupEntry=()=>(!e._buffer&&e.device&&n(e.device),{resource:{buffer:e._buffer.getHandle()}}),t.clearData=()=>{e.numberOfInstances=0,e.sizeInBytes=0,e.bufferEntries=[],e._bufferEntryNames=new Map,e._buffer=null,delete e.arrayBuffer,delete e.Float32Array},t.releaseGraphicsResources=()=>{e._buffer=null,e.bindGroupTime.modified()}}var zV={bufferEntries:null,bufferEntryNames:null,sizeInBytes:0,label:null,numberOfInstances:1};function kv(t,e,n={}){Object.assign(e,zV,n),O.obj(t,e),e._bufferEntryNames=new Map,e.bufferEntries=[],e._sendTime={},O.obj(e._sendTime,{mtime:0}),e.bindGroupTime={},O.obj(e.bindGroupTime,{mtime:0}),e.bindGroupLayoutEntry=e.bindGroupLayoutEntry||{buffer:{type:"read-only-storage"}},O.get(t,e,["bindGroupTime"]),O.setGet(t,e,["device","bindGroupLayoutEntry","label","numberOfInstances","sizeInBytes"]),bV(t,e)}var WV=O.newInstance(kv,"vtkWebGPUStorageBuffer"),Ea={newInstance:WV,extend:kv};function bv(t,e){for(let n=0;n<6;n++)t.addEntry(`${e}${n}`,"vec4<f32>")}function zv(t,e,n){let r=t.getClippingPlanes().length;for(let a=0;a<r;a++)t.getClippingPlaneInCoords(e,a,n[a]);return r}var{vtkWarningMacro:Uc}=O,AV=`
//VTK::Renderer::Dec

//VTK::Mapper::Dec

//VTK::TCoord::Dec

//VTK::Volume::TraverseDec

//VTK::RenderEncoder::Dec

//VTK::IOStructs::Dec

fn getTextureValue(vTex: texture_3d<f32>, tpos: vec4<f32>, vNum: i32) -> vec4<f32>
{
  let forceNearestMask = i32(volumeSSBO.values[vNum].componentInfo.w);
  if (forceNearestMask == 0)
  {
    return textureSampleLevel(vTex, clampSampler, tpos.xyz, 0.0);
  }

  // Match the OpenGL mapper's nearest-interpolation convention: re-sample at
  // the texel center (floor(p*dims)+0.5)/dims through the clamp sampler rather
  // than a raw textureLoad. This keeps boundary behaviour identical to WebGL.
  let dims = vec3<f32>(textureDimensions(vTex, 0));
  let nearestPos = (floor(tpos.xyz * dims) + vec3<f32>(0.5)) / dims;
  let nearestValue = textureSampleLevel(vTex, clampSampler, nearestPos, 0.0);
  if (forceNearestMask == 15)
  {
    return nearestValue;
  }

  var value = textureSampleLevel(vTex, clampSampler, tpos.xyz, 0.0);

  if ((forceNearestMask & 1) != 0) { value.x = nearestValue.x; }
  if ((forceNearestMask & 2) != 0) { value.y = nearestValue.y; }
  if ((forceNearestMask & 4) != 0) { value.z = nearestValue.z; }
  if ((forceNearestMask & 8) != 0) { value.w = nearestValue.w; }

  return value;
}

fn getComponent(v: vec4<f32>, idx: u32) -> f32
{
  if (idx == 0u) { return v.x; }
  if (idx == 1u) { return v.y; }
  if (idx == 2u) { return v.z; }
  return v.w;
}

fn getComponentValue(vTex: texture_3d<f32>, tpos: vec4<f32>, vNum: i32, component: u32) -> f32
{
  return getComponent(getTextureValue(vTex, tpos, vNum), component);
}

fn getDependentOpacityValue(sample: vec4<f32>, numComp: u32) -> f32
{
  if (numComp == 1u) { return sample.x; }
  if (numComp == 2u) { return sample.y; }
  if (numComp == 3u) { return length(sample.xyz); }
  return sample.w;
}

fn getDependentValue(vTex: texture_3d<f32>, tpos: vec4<f32>, vNum: i32, numComp: u32) -> f32
{
  return getDependentOpacityValue(getTextureValue(vTex, tpos, vNum), numComp);
}

fn getTraverseValue(sample: vec4<f32>, vNum: i32) -> f32
{
  let numComp: u32 = u32(volumeSSBO.values[vNum].componentInfo.x);
  if (volumeSSBO.values[vNum].componentInfo.y > 0.5) { return sample.x; }
  return getDependentOpacityValue(sample, numComp);
}

fn getTFunRowCoord(rowIdx: i32, tfunRows: f32) -> f32
{
  return (0.5 + 2.0 * f32(rowIdx)) / tfunRows;
}

fn intersectRayBoundsWithClipPlanes(vNum: i32, minPosSC: vec4<f32>, rayStepSC: vec4<f32>, rayBounds: vec2<f32>) -> vec2<f32>
{
  var result: vec2<f32> = rayBounds;
  let clipCount: i32 = i32(volumeSSBO.values[vNum].clipPlaneStates.x);
  if (clipCount <= 0)
  {
    return result;
  }

  ${Array.from({length:6},(t,e)=>`
  if (clipCount > ${e})
  {
    let clipPlane${e}: vec4<f32> = volumeSSBO.values[vNum].clipPlane${e};
    let rayDirRatio${e}: f32 = dot(rayStepSC, clipPlane${e});
    let equationResult${e}: f32 = dot(minPosSC, clipPlane${e});

    let absRayDirRatio${e}: f32 = abs(rayDirRatio${e});
    if (absRayDirRatio${e} > 1e-6)
    {
      let intersection${e}: f32 = -equationResult${e} / rayDirRatio${e};
      result.x = select(result.x, max(result.x, intersection${e}), rayDirRatio${e} > 0.0);
      result.y = select(result.y, min(result.y, intersection${e}), rayDirRatio${e} < 0.0);
    }
    else if (equationResult${e} < 0.0)
    {
      result.x = result.y;
    }

    if (result.x >= result.y)
    {
      return result;
    }
  }`).join(`
`)}

  return result;
}

fn getLabelOutlineThickness(vNum: i32, segmentIndex: i32) -> i32
{
  if (segmentIndex == 0)
  {
    return 0;
  }

  let dims = vec2<i32>(textureDimensions(labelOutlineThicknessTexture, 0));
  let x = clamp(segmentIndex - 1, 0, dims.x - 1);
  let y = clamp(vNum, 0, dims.y - 1);
  return i32(round(textureLoad(labelOutlineThicknessTexture, vec2<i32>(x, y), 0).r * 255.0));
}

// project a viewport tcoord (0..1) at the given NDC depth into the volume's
// texture coordinates.
fn labelFragToTPos(vNum: i32, tcoord: vec2<f32>, fragZ: f32) -> vec4<f32>
{
  let pcPos = vec4<f32>(2.0 * tcoord.x - 1.0, 1.0 - 2.0 * tcoord.y, fragZ, 1.0);
  var scPos = rendererUBO.PCSCMatrix * pcPos;
  scPos = scPos * (1.0 / scPos.w);
  // no half texel offset here: the SCTCMatrix already addresses texel centers
  return volumeSSBO.values[vNum].SCTCMatrix * scPos;
}

// Screen space label outline compare the segment under this fragment with the
// segments under its screen neighbors within the per segment thickness;
// any mismatch means we are on an edge and the outline color is emitted.
// labelOutline = (useLabelOutline, outlineOpacity, textureScale, unused)
fn getColorForLabelOutline(vTex: texture_3d<f32>, tcoord: vec2<f32>, fragZ: f32, vNum: i32, rowStart: i32, tfunRows: f32) -> vec4<f32>
{
  let centerTPos = labelFragToTPos(vNum, tcoord, fragZ);
  if (
    centerTPos.x < 0.0 || centerTPos.y < 0.0 || centerTPos.z < 0.0 ||
    centerTPos.x > 1.0 || centerTPos.y > 1.0 || centerTPos.z > 1.0
  )
  {
    return vec4<f32>(0.0);
  }

  let centerValue = getTextureValue(vTex, centerTPos, vNum);
  // recover the raw label value from the normalized texture sample
  let segmentIndex = i32(round(centerValue.r * volumeSSBO.values[vNum].labelOutline.z));
  if (segmentIndex == 0)
  {
    return vec4<f32>(0.0);
  }

  let rowCoord = getTFunRowCoord(rowStart, tfunRows);
  var coord = vec2<f32>(
    centerValue.r * volumeSSBO.values[vNum].colorScale.x +
      volumeSSBO.values[vNum].colorShift.x,
    rowCoord
  );
  let color = textureSampleLevel(tfunTexture, clampSampler, coord, 0.0).rgb;
  coord.x = centerValue.r * volumeSSBO.values[vNum].opacityScale.x +
    volumeSSBO.values[vNum].opacityShift.x;
  let opacity = textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;

  let actualThickness = getLabelOutlineThickness(vNum, segmentIndex);
  if (actualThickness <= 0)
  {
    return vec4<f32>(color, opacity);
  }

  // one fragment in viewport tcoord units
  let fragStep = vec2<f32>(1.0, 1.0) / rendererUBO.viewportSize;

  for (var i = -actualThickness; i <= actualThickness; i = i + 1)
  {
    for (var j = -actualThickness; j <= actualThickness; j = j + 1)
    {
      if (i == 0 && j == 0)
      {
        continue;
      }

      let neighborTcoord = tcoord + vec2<f32>(f32(i), f32(j)) * fragStep;
      let neighborTPos = labelFragToTPos(vNum, neighborTcoord, fragZ);
      let neighborValue = getTextureValue(vTex, neighborTPos, vNum);
      if (any(neighborValue != centerValue))
      {
        return vec4<f32>(color, volumeSSBO.values[vNum].labelOutline.y);
      }
    }
  }

  return vec4<f32>(color, opacity);
}

fn getGradient(vTex: texture_3d<f32>, tpos: vec4<f32>, vNum: i32, component: u32) -> vec4<f32>
{
  var result: vec4<f32>;

  var tstep: vec4<f32> = volumeSSBO.values[vNum].tstep;
  // Central differences (matches the OpenGL/WebGL mapper) for smoother normals.
  result.x = getComponentValue(vTex, tpos + vec4<f32>(tstep.x, 0.0, 0.0, 0.0), vNum, component)
           - getComponentValue(vTex, tpos - vec4<f32>(tstep.x, 0.0, 0.0, 0.0), vNum, component);
  result.y = getComponentValue(vTex, tpos + vec4<f32>(0.0, tstep.y, 0.0, 0.0), vNum, component)
           - getComponentValue(vTex, tpos - vec4<f32>(0.0, tstep.y, 0.0, 0.0), vNum, component);
  result.z = getComponentValue(vTex, tpos + vec4<f32>(0.0, 0.0, tstep.z, 0.0), vNum, component)
           - getComponentValue(vTex, tpos - vec4<f32>(0.0, 0.0, tstep.z, 0.0), vNum, component);
  // WebGPU texture coordinates have their Y axis opposite to the image-index
  // convention used by the OpenGL volume shader.
  result.y = -result.y;
  result.w = 0.0;

  // central difference spans two samples, so the delta is twice the spacing
  result = result / (2.0 * volumeSSBO.values[vNum].spacing);
  // now we have a gradient in unit tcoords

  var grad: f32 = length(result.xyz);
  if (grad > 0.0)
  {
    // rotate to View Coords, needed for lighting and shading
    var nMat: mat4x4<f32> = rendererUBO.SCVCMatrix * volumeSSBO.values[vNum].planeNormals;
    result = nMat * result;
    result = result / length(result);
  }

  // store gradient magnitude in .w
  result.w = grad;

  return result;
}

fn getDependentGradient(vTex: texture_3d<f32>, tpos: vec4<f32>, vNum: i32, numComp: u32) -> vec4<f32>
{
  var result: vec4<f32>;

  var tstep: vec4<f32> = volumeSSBO.values[vNum].tstep;
  // Central differences (matches the OpenGL/WebGL mapper) for smoother normals.
  result.x = getDependentValue(vTex, tpos + vec4<f32>(tstep.x, 0.0, 0.0, 0.0), vNum, numComp)
           - getDependentValue(vTex, tpos - vec4<f32>(tstep.x, 0.0, 0.0, 0.0), vNum, numComp);
  result.y = getDependentValue(vTex, tpos + vec4<f32>(0.0, tstep.y, 0.0, 0.0), vNum, numComp)
           - getDependentValue(vTex, tpos - vec4<f32>(0.0, tstep.y, 0.0, 0.0), vNum, numComp);
  result.z = getDependentValue(vTex, tpos + vec4<f32>(0.0, 0.0, tstep.z, 0.0), vNum, numComp)
           - getDependentValue(vTex, tpos - vec4<f32>(0.0, 0.0, tstep.z, 0.0), vNum, numComp);
  result.y = -result.y;
  result.w = 0.0;

  // central difference spans two samples, so the delta is twice the spacing
  result = result / (2.0 * volumeSSBO.values[vNum].spacing);

  var grad: f32 = length(result.xyz);
  if (grad > 0.0)
  {
    var nMat: mat4x4<f32> = rendererUBO.SCVCMatrix * volumeSSBO.values[vNum].planeNormals;
    result = nMat * result;
    result = result / length(result);
  }

  result.w = grad;

  return result;
}

// Compute the lighting normal after mapping neighboring scalar values through
// the opacity transfer function. This matches computeDensityNormal in the
// OpenGL volume shader and is used when computeNormalFromOpacity is enabled.
fn getOpacityGradient(
  vTex: texture_3d<f32>, tpos: vec4<f32>, vNum: i32,
  component: u32, rowIdx: i32, gradientOpacity: f32) -> vec4<f32>
{
  let tstep = volumeSSBO.values[vNum].tstep;
  let tfunRows = f32(textureDimensions(ofunTexture).y);
  var result = vec4<f32>(
    getOpacity(getComponentValue(vTex, tpos + vec4<f32>(tstep.x, 0.0, 0.0, 0.0), vNum, component), rowIdx, tfunRows) -
      getOpacity(getComponentValue(vTex, tpos - vec4<f32>(tstep.x, 0.0, 0.0, 0.0), vNum, component), rowIdx, tfunRows),
    getOpacity(getComponentValue(vTex, tpos + vec4<f32>(0.0, tstep.y, 0.0, 0.0), vNum, component), rowIdx, tfunRows) -
      getOpacity(getComponentValue(vTex, tpos - vec4<f32>(0.0, tstep.y, 0.0, 0.0), vNum, component), rowIdx, tfunRows),
    getOpacity(getComponentValue(vTex, tpos + vec4<f32>(0.0, 0.0, tstep.z, 0.0), vNum, component), rowIdx, tfunRows) -
      getOpacity(getComponentValue(vTex, tpos - vec4<f32>(0.0, 0.0, tstep.z, 0.0), vNum, component), rowIdx, tfunRows),
    0.0
  );
  result.y = -result.y;
  result = result * gradientOpacity / volumeSSBO.values[vNum].spacing;
  let gradientMagnitude = length(result.xyz);
  if (gradientMagnitude > 0.0)
  {
    let normalMatrix = rendererUBO.SCVCMatrix * volumeSSBO.values[vNum].planeNormals;
    result = normalMatrix * result;
    result = vec4<f32>(normalize(result.xyz), gradientMagnitude);
  }
  result.w = gradientMagnitude;
  return result;
}

fn getSampleOpacity(vTex: texture_3d<f32>, sample: vec4<f32>, tpos: vec4<f32>, vNum: i32, rowStart: i32) -> f32
{
  let numComp: u32 = u32(volumeSSBO.values[vNum].componentInfo.x);
  let independent = volumeSSBO.values[vNum].componentInfo.y > 0.5;
  let tfunRows = f32(textureDimensions(tfunTexture).y);

  if (independent)
  {
    var alpha: f32 = 0.0;
    for (var c: u32 = 0u; c < numComp; c = c + 1u)
    {
      let rowIdx: i32 = rowStart + i32(c);
      let scalar = getComponent(sample, c);
      var opacity = getOpacity(scalar, rowIdx, tfunRows);
      if (componentSSBO.values[rowIdx].gomin < 1.0)
      {
        let normal = getGradient(vTex, tpos, vNum, c);
        let gofactor = clamp(
          normal.a * componentSSBO.values[rowIdx].goScale + componentSSBO.values[rowIdx].goShift,
          componentSSBO.values[rowIdx].gomin,
          componentSSBO.values[rowIdx].gomax
        );
        opacity = opacity * gofactor;
      }
      alpha = alpha + componentSSBO.values[rowIdx].mixWeight * opacity;
    }
    return min(alpha, 1.0);
  }

  let opacityScalar = getDependentOpacityValue(sample, numComp);
  var opacity: f32;
  if (numComp == 1u)
  {
    opacity = getOpacity(sample.r, rowStart, tfunRows);
  }
  else if (numComp == 2u)
  {
    opacity = getOpacity(sample.g, rowStart, tfunRows);
  }
  else if (numComp == 3u)
  {
    opacity = getOpacity(opacityScalar, rowStart, tfunRows);
  }
  else
  {
    opacity = getOpacity(sample.a, rowStart, tfunRows);
  }

  if (componentSSBO.values[rowStart].gomin < 1.0)
  {
    let normal = getDependentGradient(vTex, tpos, vNum, numComp);
    let gofactor = clamp(
      normal.a * componentSSBO.values[rowStart].goScale + componentSSBO.values[rowStart].goShift,
      componentSSBO.values[rowStart].gomin,
      componentSSBO.values[rowStart].gomax
    );
    opacity = opacity * gofactor;
  }

  return opacity;
}

fn getViewVector(posVC: vec3<f32>) -> vec3<f32>
{
  if (rendererUBO.cameraParallel != 0u)
  {
    return vec3<f32>(0.0, 0.0, 1.0);
  }
  return normalize(-posVC);
}

fn getRayDirection(posVC: vec3<f32>) -> vec3<f32>
{
  return -getViewVector(posVC);
}

fn phaseFunction(cosAngle: f32, vNum: i32) -> f32
{
  let anisotropy = volumeSSBO.values[vNum].scattering.z;
  if (abs(anisotropy) <= 0.000001)
  {
    return 0.5;
  }

  let anisotropy2 = volumeSSBO.values[vNum].scattering.w;
  return ((1.0 - anisotropy2) /
    pow(1.0 + anisotropy2 - 2.0 * anisotropy * cosAngle, 1.5)) *
    0.5;
}

fn getVolumeLightDirection(posVC: vec3<f32>, lightIdx: i32) -> vec3<f32>
{
  let lightType = i32(rendererLightSSBO.values[lightIdx].LightData.x);
  if (lightType == 1)
  {
    return -normalize(
      (rendererUBO.WCVCNormals *
        vec4<f32>(normalize(rendererLightSSBO.values[lightIdx].LightDir.xyz), 0.0)).xyz
    );
  }

  let lightPosVC = rendererLightSSBO.values[lightIdx].LightPos.xyz;
  let lightOffset = lightPosVC - posVC;
  let lightDistance = length(lightOffset);
  if (lightDistance <= 0.0)
  {
    return vec3<f32>(0.0, 0.0, 0.0);
  }
  return lightOffset / lightDistance;
}

fn getFragmentSeed(fragPos: vec4<f32>) -> f32
{
  let firstNoise =
    fract(sin(dot(fragPos.xy, vec2<f32>(12.9898, 78.233))) * 43758.5453);
  let x = (i32(floor(fragPos.x)) % 32 + 32) % 32;
  let y = (i32(floor(fragPos.y)) % 32 + 32) % 32;
  let secondNoise = jitterSSBO.values[y * 32 + x].value;
  let noiseSum = firstNoise + secondNoise;
  return select(noiseSum - 1.0, noiseSum, noiseSum < 1.0);
}

fn sampleDirectionUniform(fragmentSeed: f32, rayIndex: i32) -> vec3<f32>
{
  let rayRandomness = kernelSampleSSBO.values[rayIndex].value;
  var mergedRandom = rayRandomness + vec2<f32>(fragmentSeed, fragmentSeed);
  if (mergedRandom.x >= 1.0) { mergedRandom.x = mergedRandom.x - 1.0; }
  if (mergedRandom.y >= 1.0) { mergedRandom.y = mergedRandom.y - 1.0; }
  let u = mergedRandom.x;
  let v = mergedRandom.y;
  let theta = u * 6.28318530718;
  let phi = acos(2.0 * v - 1.0);
  let sinTheta = sin(theta);
  let cosTheta = cos(theta);
  let sinPhi = sin(phi);
  let cosPhi = cos(phi);
  return vec3<f32>(sinPhi * cosTheta, sinPhi * sinTheta, cosPhi);
}

fn computeLAO(vTex: texture_3d<f32>, fragPos: vec4<f32>, posVC: vec3<f32>, normalVC: vec4<f32>, originalOpacity: f32, vNum: i32, rowStart: i32) -> f32
{
  if (normalVC.w <= 0.0 || originalOpacity <= 0.05)
  {
    return 1.0;
  }

  let kernelSize = i32(volumeSSBO.values[vNum].lao.x);
  if (kernelSize <= 0)
  {
    return 1.0;
  }
  let kernelRadius = i32(volumeSSBO.values[vNum].lao.y);
  let fragmentSeed = getFragmentSeed(fragPos);

  var visibilitySum = 0.0;
  var weightSum = 0.0;
  var i: i32 = 0;
  loop
  {
    if (i >= kernelSize) { break; }
    var rayDirectionVC = sampleDirectionUniform(fragmentSeed, i);
    var normalDotRay = dot(normalVC.xyz, rayDirectionVC);
    if (normalDotRay > 0.0)
    {
      rayDirectionVC = -rayDirectionVC;
      normalDotRay = -normalDotRay;
    }

    var currTC = (volumeSSBO.values[vNum].VCTCMatrix * vec4<f32>(posVC, 1.0)).xyz;
    let rayStepTC = (volumeSSBO.values[vNum].VCTCMatrix *
      vec4<f32>(rayDirectionVC * mapperUBO.SampleDistance, 0.0)).xyz;
    var visibility = 1.0;

    var j: i32 = 0;
    loop
    {
      if (j >= kernelRadius) { break; }
      currTC = currTC + rayStepTC;
      if (any(currTC < vec3<f32>(0.0)) || any(currTC > vec3<f32>(1.0)))
      {
        break;
      }
      let sampleTC = vec4<f32>(currTC, 1.0);
      let opacity = getSampleOpacity(vTex, getTextureValue(vTex, sampleTC, vNum), sampleTC, vNum, rowStart);
      visibility = visibility * (1.0 - opacity);
      if (visibility <= 0.000001)
      {
        visibility = 0.0;
        break;
      }
      j++;
    }

    let rayWeight = -normalDotRay;
    visibilitySum = visibilitySum + visibility * rayWeight;
    weightSum = weightSum + rayWeight;
    i++;
  }

  if (weightSum == 0.0)
  {
    return 1.0;
  }

  // LAO factor is the average ray visibility (low visibility -> low ambient).
  // The 0.3 floor matches the OpenGL mapper and reduces variance/noise so that
  // heavily occluded samples never collapse to fully black.
  return clamp(visibilitySum / weightSum, 0.3, 1.0);
}

fn applySurfaceLighting(vTex: texture_3d<f32>, fragPos: vec4<f32>, tColor: vec3<f32>, alpha: f32, posVC: vec3<f32>, normalVC: vec4<f32>, vNum: i32, rowStart: i32) -> vec3<f32>
{
  if (rendererUBO.LightCount <= 0)
  {
    return tColor;
  }

  let lighting = volumeSSBO.values[vNum].lighting;
  let ambient = lighting.x;
  let diffuseCoeff = lighting.y;
  let specularCoeff = lighting.z;
  let specularPower = lighting.w;
  let viewDir = getViewVector(posVC);
  let laoFactor = computeLAO(vTex, fragPos, posVC, normalVC, alpha, vNum, rowStart);

  var diffuse = vec3<f32>(0.0);
  var specular = vec3<f32>(0.0);

  var i: i32 = 0;
  loop
  {
    if (i >= rendererUBO.LightCount) { break; }

    let lightColor =
      rendererLightSSBO.values[i].LightColor.rgb *
      (rendererLightSSBO.values[i].LightColor.w * 0.2);
    let lightType = i32(rendererLightSSBO.values[i].LightData.x);

    var lightDirection = vec3<f32>(0.0);
    var attenuation = 1.0;

    if (lightType == 0)
    {
      let lightPosVC = rendererLightSSBO.values[i].LightPos.xyz;
      let lightOffset = posVC - lightPosVC;
      let lightDistance = length(lightOffset);
      if (lightDistance <= 0.0)
      {
        i++;
        continue;
      }
      lightDirection = lightOffset / lightDistance;
      let attenuationValues = rendererLightSSBO.values[i].LightAttenuation.xyz;
      attenuation = 1.0 / max(
        0.000001,
        attenuationValues.x + lightDistance *
          (attenuationValues.y + lightDistance * attenuationValues.z)
      );
    }
    else if (lightType == 1)
    {
      lightDirection = -normalize(
        (rendererUBO.WCVCNormals *
          vec4<f32>(normalize(rendererLightSSBO.values[i].LightDir.xyz), 0.0)).xyz
      );
    }
    else if (lightType == 2)
    {
      let lightPosVC = rendererLightSSBO.values[i].LightPos.xyz;
      let lightOffset = posVC - lightPosVC;
      let lightDistance = length(lightOffset);
      if (lightDistance <= 0.0)
      {
        i++;
        continue;
      }
      lightDirection = lightOffset / lightDistance;
      let attenuationValues = rendererLightSSBO.values[i].LightAttenuation.xyz;
      attenuation = 1.0 / max(
        0.000001,
        attenuationValues.x + lightDistance *
          (attenuationValues.y + lightDistance * attenuationValues.z)
      );

      let spotDirVC = -normalize(
        (rendererUBO.WCVCNormals *
          vec4<f32>(normalize(rendererLightSSBO.values[i].LightDir.xyz), 0.0)).xyz
      );
      let theta = dot(spotDirVC, lightDirection);
      let innerCone = rendererLightSSBO.values[i].LightData.y;
      if (theta < innerCone)
      {
        i++;
        continue;
      }
      attenuation = attenuation * pow(
        max(theta, 0.0),
        rendererLightSSBO.values[i].LightAttenuation.w
      );
    }
    else
    {
      i++;
      continue;
    }

    var ndotL = dot(normalVC.xyz, lightDirection);
    if (ndotL < 0.0 && volumeSSBO.values[vNum].shade.z > 0.0)
    {
      ndotL = -ndotL;
    }
    ndotL = max(ndotL, 0.0);
    if (ndotL > 0.0)
    {
      diffuse += ndotL * attenuation * lightColor;

      let reflectDir = normalize(lightDirection - 2.0 * ndotL * normalVC.xyz);
      let vdotR = max(dot(viewDir, reflectDir), 0.0);
      if (vdotR > 0.0)
      {
        specular += pow(vdotR, specularPower) * attenuation * lightColor;
      }
    }

    i++;
  }

  return tColor * (ambient * laoFactor + diffuseCoeff * diffuse) +
    specularCoeff * specular;
}

// The OpenGL mapper uses its simpler applyLighting path for the default
// independent-component preset. In particular, that path does not apply
// two-sided lighting, positional attenuation, LAO, or volume scattering.
fn applyIndependentLighting(tColor: vec3<f32>, normalVC: vec4<f32>, vNum: i32) -> vec3<f32>
{
  let lighting = volumeSSBO.values[vNum].lighting;
  var diffuse = vec3<f32>(0.0);
  var specular = vec3<f32>(0.0);

  var i: i32 = 0;
  loop
  {
    if (i >= rendererUBO.LightCount) { break; }

    let lightColor =
      rendererLightSSBO.values[i].LightColor.rgb *
      (rendererLightSSBO.values[i].LightColor.w * 0.2);
    let lightDirection = -normalize(
      (rendererUBO.WCVCNormals *
        vec4<f32>(normalize(rendererLightSSBO.values[i].LightDir.xyz), 0.0)).xyz
    );
    let df = dot(normalVC.xyz, lightDirection);
    if (df > 0.0)
    {
      diffuse = diffuse + df * lightColor;
      let halfAngle = vec3<f32>(
        -0.5 * lightDirection.x,
        -0.5 * lightDirection.y,
        -0.5 * (lightDirection.z - 1.0)
      );
      let sf = dot(normalVC.xyz, -halfAngle);
      if (sf > 0.0)
      {
        specular = specular +
          pow(sf, lighting.w) * lightColor;
      }
    }
    i++;
  }

  return tColor * (diffuse * lighting.y + lighting.x) +
    specular * lighting.z;
}

fn applyVolumeLighting(vTex: texture_3d<f32>, tColor: vec3<f32>, posVC: vec3<f32>, vNum: i32, rowStart: i32, fragmentSeed: f32) -> vec3<f32>
{
  if (rendererUBO.LightCount <= 0)
  {
    return tColor;
  }

  let lighting = volumeSSBO.values[vNum].lighting;
  let ambient = lighting.x;
  let diffuseCoeff = lighting.y;
  let rayDir = getRayDirection(posVC);
  var diffuse = vec3<f32>(0.0);

  var i: i32 = 0;
  loop
  {
    if (i >= rendererUBO.LightCount) { break; }

    let lightDir = getVolumeLightDirection(posVC, i);
    if (dot(lightDir, lightDir) > 0.0)
    {
      let lightColor =
        rendererLightSSBO.values[i].LightColor.rgb *
        (rendererLightSSBO.values[i].LightColor.w * 0.2);
      let shadowCoeff = computeVolumeShadow(vTex, posVC, lightDir, vNum, rowStart, fragmentSeed);
      let phaseAttenuation = phaseFunction(dot(rayDir, lightDir), vNum);
      diffuse += phaseAttenuation * shadowCoeff * lightColor;
    }

    i++;
  }

  return tColor * (ambient + diffuseCoeff * diffuse);
}

fn rayIntersectTextureDistances(rayOriginTC: vec3<f32>, rayDirTC: vec3<f32>) -> vec2<f32>
{
  let invDir = 1.0 / rayDirTC;
  let distancesTo0 = invDir * (vec3<f32>(0.0) - rayOriginTC);
  let distancesTo1 = invDir * (vec3<f32>(1.0) - rayOriginTC);
  let dMinPerAxis = min(distancesTo0, distancesTo1);
  let dMaxPerAxis = max(distancesTo0, distancesTo1);
  let distanceMin = max(dMinPerAxis.x, max(dMinPerAxis.y, dMinPerAxis.z));
  let distanceMax = min(dMaxPerAxis.x, min(dMaxPerAxis.y, dMaxPerAxis.z));
  return vec2<f32>(distanceMin, distanceMax);
}

fn computeVolumeShadow(vTex: texture_3d<f32>, posVC: vec3<f32>, lightDirVC: vec3<f32>, vNum: i32, rowStart: i32, fragmentSeed: f32) -> f32
{
  // Jitter the shadow step length per fragment by a random factor in [1.5, 3.0]
  // to break up banding, matching the OpenGL mapper (mix(1.5, 3.0, fragmentSeed)).
  let shadowStepLength = volumeSSBO.values[vNum].shadow.y * mix(1.5, 3.0, fragmentSeed);
  if (shadowStepLength <= 0.0)
  {
    return 1.0;
  }

  let initialPosVC = posVC + shadowStepLength * lightDirVC;
  let rayOriginTC = (volumeSSBO.values[vNum].VCTCMatrix * vec4<f32>(initialPosVC, 1.0)).xyz;
  let lightReach = volumeSSBO.values[vNum].scattering.y * volumeSSBO.values[vNum].shadow.x;
  if (lightReach <= 0.0)
  {
    return 1.0;
  }

  let lightDirTC = (volumeSSBO.values[vNum].VCTCMatrix * vec4<f32>(lightDirVC, 0.0)).xyz;
  if (dot(lightDirTC, lightDirTC) <= 0.0)
  {
    return 1.0;
  }

  let intersectionDistances = rayIntersectTextureDistances(rayOriginTC, lightDirTC);
  if (intersectionDistances.y <= intersectionDistances.x || intersectionDistances.y <= 0.0)
  {
    return 1.0;
  }

  let startDistance = max(intersectionDistances.x, 0.0);
  let endDistance = min(intersectionDistances.y, startDistance + lightReach);
  if (endDistance <= startDistance)
  {
    return 1.0;
  }

  var currentDistance = startDistance;
  var shadow = 1.0;
  loop
  {
    if (currentDistance > endDistance) { break; }
    let sampleTC = rayOriginTC + currentDistance * lightDirTC;
    let sample = getTextureValue(vTex, vec4<f32>(sampleTC, 1.0), vNum);
    let opacity = getSampleOpacity(
      vTex,
      sample,
      vec4<f32>(sampleTC, 1.0),
      vNum,
      rowStart
    );
    shadow = shadow * (1.0 - opacity);
    if (shadow <= 0.000001)
    {
      return 0.0;
    }
    currentDistance = currentDistance + shadowStepLength;
  }

  return shadow;
}

fn applyAllLighting(vTex: texture_3d<f32>, fragPos: vec4<f32>, tColor: vec3<f32>, alpha: f32, posVC: vec3<f32>, normalVC: vec4<f32>, vNum: i32, rowStart: i32) -> vec3<f32>
{
  if (rendererUBO.LightCount <= 0)
  {
    return tColor;
  }

  // volCoeff decides how much volume shadowing vs surface shadowing to apply
  // (ported from the OpenGL mapper's applyAllLightning):
  //   0                 <= volCoeff < EPSILON       => surface shadows only
  //   EPSILON           <= volCoeff < 1 - EPSILON   => mix of surface + volume
  //   1 - EPSILON       <= volCoeff                 => volume shadows only
  // It scales the user's VolumetricScatteringBlending (scattering.x) by:
  //   (1 - alpha*0.5)            -> more transparent samples lean volumetric
  //   (1 - atan(grad) * 1/(4pi)) -> weaker gradients lean volumetric
  // normalVC.w is the gradient magnitude and 0.0795774715 == 1/(4*PI).
  let volCoeff = volumeSSBO.values[vNum].scattering.x *
    (1.0 - alpha * 0.5) *
    (1.0 - atan(normalVC.w) * 0.0795774715);

  if (volCoeff <= 0.000001)
  {
    return applySurfaceLighting(vTex, fragPos, tColor, alpha, posVC, normalVC, vNum, rowStart);
  }

  // per fragment seed shared by all lights for the shadow step jitter
  let fragmentSeed = getFragmentSeed(fragPos);
  let volumeShadedColor = applyVolumeLighting(vTex, tColor, posVC, vNum, rowStart, fragmentSeed);
  if (volCoeff >= 0.999999)
  {
    return volumeShadedColor;
  }

  let surfaceShadedColor =
    applySurfaceLighting(vTex, fragPos, tColor, alpha, posVC, normalVC, vNum, rowStart);
  return mix(surfaceShadedColor, volumeShadedColor, volCoeff);
}

fn processVolumeSample(
  vTex: texture_3d<f32>, fragPos: vec4<f32>, vNum: i32, rowStart: i32,
  posSC: vec4<f32>, tpos: vec4<f32>, sample: vec4<f32>,
  tfunRows: f32, enableShading: bool) -> vec4<f32>
{
  var outColor: vec4<f32> = vec4<f32>(0.0, 0.0, 0.0, 0.0);

  let numComp: u32 = u32(volumeSSBO.values[vNum].componentInfo.x);
  let independent = volumeSSBO.values[vNum].componentInfo.y > 0.5;
  let colorMixPreset = i32(volumeSSBO.values[vNum].componentInfo.z);
  let posVC = (rendererUBO.SCVCMatrix * posSC).xyz;

  if (independent)
  {
    if (colorMixPreset == 1 && numComp >= 2u)
    {
      let scalar0 = getComponent(sample, 0u);
      let scalar1 = getComponent(sample, 1u);
      let rowIdx0 = rowStart;
      let rowIdx1 = rowStart + 1;

      let coord0 = vec2<f32>(
        scalar0 * componentSSBO.values[rowIdx0].cScale + componentSSBO.values[rowIdx0].cShift,
        getTFunRowCoord(rowIdx0, tfunRows)
      );
      let coord1 = vec2<f32>(
        scalar1 * componentSSBO.values[rowIdx1].cScale + componentSSBO.values[rowIdx1].cShift,
        getTFunRowCoord(rowIdx1, tfunRows)
      );
      var color0 = textureSampleLevel(tfunTexture, clampSampler, coord0, 0.0).rgb;
      var color1 = textureSampleLevel(tfunTexture, clampSampler, coord1, 0.0).rgb;
      var opacity0 = getOpacity(scalar0, rowIdx0, tfunRows);
      var opacity1 = getOpacity(scalar1, rowIdx1, tfunRows);

      var normal0 = vec4<f32>(0.0);
      var normal1 = vec4<f32>(0.0);
      if (componentSSBO.values[rowIdx0].gomin < 1.0 || volumeSSBO.values[vNum].shade[0] > 0.0)
      {
        normal0 = getGradient(vTex, tpos, vNum, 0u);
        if (componentSSBO.values[rowIdx0].gomin < 1.0)
        {
          opacity0 = opacity0 * clamp(
            normal0.a * componentSSBO.values[rowIdx0].goScale + componentSSBO.values[rowIdx0].goShift,
            componentSSBO.values[rowIdx0].gomin,
            componentSSBO.values[rowIdx0].gomax
          );
        }
      }
      if (componentSSBO.values[rowIdx1].gomin < 1.0 || volumeSSBO.values[vNum].shade[0] > 0.0)
      {
        normal1 = getGradient(vTex, tpos, vNum, 1u);
        if (componentSSBO.values[rowIdx1].gomin < 1.0)
        {
          opacity1 = opacity1 * clamp(
            normal1.a * componentSSBO.values[rowIdx1].goScale + componentSSBO.values[rowIdx1].goShift,
            componentSSBO.values[rowIdx1].gomin,
            componentSSBO.values[rowIdx1].gomax
          );
        }
      }

      let opacitySum = opacity0 + opacity1;
      if (opacitySum <= 0.0)
      {
        return outColor;
      }

      if (enableShading && volumeSSBO.values[vNum].shade[0] > 0.0)
      {
        if (volumeSSBO.values[vNum].shade[1] > 0.0)
        {
          normal0 = getOpacityGradient(vTex, tpos, vNum, 0u, rowIdx0, 1.0);
          normal1 = getOpacityGradient(vTex, tpos, vNum, 1u, rowIdx1, 1.0);
        }
        color0 = applyAllLighting(vTex, fragPos, color0, opacity0, posVC, normal0, vNum, rowIdx0);
        color1 = applyAllLighting(vTex, fragPos, color1, opacity1, posVC, normal1, vNum, rowIdx1);
      }

      outColor = vec4<f32>(
        (opacity0 * color0 + opacity1 * color1) / opacitySum,
        min(1.0, opacitySum)
      );
      return outColor;
    }

    if (colorMixPreset == 2 && numComp >= 2u)
    {
      let scalar0 = getComponent(sample, 0u);
      let scalar1 = getComponent(sample, 1u);
      let rowIdx0 = rowStart;
      let rowIdx1 = rowStart + 1;

      let coord0 = vec2<f32>(
        scalar0 * componentSSBO.values[rowIdx0].cScale + componentSSBO.values[rowIdx0].cShift,
        getTFunRowCoord(rowIdx0, tfunRows)
      );
      let coord1 = vec2<f32>(
        scalar1 * componentSSBO.values[rowIdx1].cScale + componentSSBO.values[rowIdx1].cShift,
        getTFunRowCoord(rowIdx1, tfunRows)
      );
      var color0 = textureSampleLevel(tfunTexture, clampSampler, coord0, 0.0).rgb;
      let colorizingColor = textureSampleLevel(tfunTexture, clampSampler, coord1, 0.0).rgb;
      var opacity0 = getOpacity(scalar0, rowIdx0, tfunRows);
      let colorizingOpacity = getOpacity(scalar1, rowIdx1, tfunRows);

      var normal0 = vec4<f32>(0.0);
      if (componentSSBO.values[rowIdx0].gomin < 1.0 || volumeSSBO.values[vNum].shade[0] > 0.0)
      {
        normal0 = getGradient(vTex, tpos, vNum, 0u);
        if (componentSSBO.values[rowIdx0].gomin < 1.0)
        {
          opacity0 = opacity0 * clamp(
            normal0.a * componentSSBO.values[rowIdx0].goScale + componentSSBO.values[rowIdx0].goShift,
            componentSSBO.values[rowIdx0].gomin,
            componentSSBO.values[rowIdx0].gomax
          );
        }
      }

      var color = color0 * mix(vec3<f32>(1.0), colorizingColor, colorizingOpacity);
      if (enableShading && volumeSSBO.values[vNum].shade[0] > 0.0)
      {
        if (volumeSSBO.values[vNum].shade[1] > 0.0)
        {
          normal0 = getOpacityGradient(vTex, tpos, vNum, 0u, rowIdx0, 1.0);
        }
        color = applyAllLighting(vTex, fragPos, color, opacity0, posVC, normal0, vNum, rowIdx0);
      }

      outColor = vec4<f32>(color, opacity0);
      return outColor;
    }

    var mixedColor: vec3<f32> = vec3<f32>(0.0, 0.0, 0.0);
    var mixedAlpha: f32 = 0.0;
    if (i32(componentSSBO.values[rowStart].opacityMode) == 1)
    {
      mixedAlpha = 1.0;
    }
    for (var c: u32 = 0u; c < numComp; c = c + 1u)
    {
      let rowIdx: i32 = rowStart + i32(c);
      let scalar = getComponent(sample, c);
      var coord: vec2<f32> =
        vec2<f32>(
          scalar * componentSSBO.values[rowIdx].cScale + componentSSBO.values[rowIdx].cShift,
          getTFunRowCoord(rowIdx, tfunRows)
        );
      var color: vec3<f32> = textureSampleLevel(tfunTexture, clampSampler, coord, 0.0).rgb;
      coord.x = scalar * componentSSBO.values[rowIdx].oScale + componentSSBO.values[rowIdx].oShift;
      var opacity: f32 = textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;

      var gofactor: f32 = 1.0;
      var sampleAlpha = opacity;
      var normal: vec4<f32> = vec4<f32>(0.0,0.0,0.0,0.0);
      if (componentSSBO.values[rowIdx].gomin <  1.0 || volumeSSBO.values[vNum].shade[0] > 0.0)
      {
        normal = getGradient(vTex, tpos, vNum, c);
        if (componentSSBO.values[rowIdx].gomin <  1.0)
        {
          gofactor = clamp(normal.a*componentSSBO.values[rowIdx].goScale + componentSSBO.values[rowIdx].goShift,
            componentSSBO.values[rowIdx].gomin, componentSSBO.values[rowIdx].gomax);
        }
      }
      sampleAlpha = gofactor * opacity;

      if (enableShading && volumeSSBO.values[vNum].shade[0] > 0.0)
      {
        color = applyIndependentLighting(color, normal, vNum);
      }

      let mixWeight = componentSSBO.values[rowIdx].mixWeight;
      let opacityMode = i32(componentSSBO.values[rowIdx].opacityMode);
      if (opacityMode == 1)
      {
        color = color * sampleAlpha;
        mixedAlpha = mixedAlpha * mix(sampleAlpha, 1.0, 1.0 - mixWeight);
      }
      else
      {
        mixedAlpha = mixedAlpha + mixWeight * sampleAlpha;
      }
      mixedColor = mixedColor + mixWeight * color;
    }

    outColor = vec4<f32>(mixedColor, min(mixedAlpha, 1.0));
    return outColor;
  }

  let opacityScalar = getDependentOpacityValue(sample, numComp);
  var coord: vec2<f32> =
    vec2<f32>(
      0.0,
      getTFunRowCoord(rowStart, tfunRows)
    );
  var opacity: f32 = textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;
  var color: vec3<f32>;
  if (numComp == 1u)
  {
    coord.x = sample.r * volumeSSBO.values[vNum].colorScale.x +
      volumeSSBO.values[vNum].colorShift.x;
    color = textureSampleLevel(tfunTexture, clampSampler, coord, 0.0).rgb;
    coord.x = sample.r * volumeSSBO.values[vNum].opacityScale.x +
      volumeSSBO.values[vNum].opacityShift.x;
    opacity = textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;
  }
  else if (numComp == 2u)
  {
    color = vec3<f32>(
      sample.r * volumeSSBO.values[vNum].colorScale.x +
        volumeSSBO.values[vNum].colorShift.x
    );
    coord.x = sample.g * volumeSSBO.values[vNum].opacityScale.y +
      volumeSSBO.values[vNum].opacityShift.y;
    opacity = textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;
  }
  else if (numComp == 3u)
  {
    color = vec3<f32>(
      sample.r * volumeSSBO.values[vNum].colorScale.x +
        volumeSSBO.values[vNum].colorShift.x,
      sample.g * volumeSSBO.values[vNum].colorScale.y +
        volumeSSBO.values[vNum].colorShift.y,
      sample.b * volumeSSBO.values[vNum].colorScale.z +
        volumeSSBO.values[vNum].colorShift.z
    );
    coord.x = opacityScalar * volumeSSBO.values[vNum].opacityScale.x +
      volumeSSBO.values[vNum].opacityShift.x;
    opacity = textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;
  }
  else
  {
    color = vec3<f32>(
      sample.r * volumeSSBO.values[vNum].colorScale.x +
        volumeSSBO.values[vNum].colorShift.x,
      sample.g * volumeSSBO.values[vNum].colorScale.y +
        volumeSSBO.values[vNum].colorShift.y,
      sample.b * volumeSSBO.values[vNum].colorScale.z +
        volumeSSBO.values[vNum].colorShift.z
    );
    coord.x = sample.a * volumeSSBO.values[vNum].opacityScale.w +
      volumeSSBO.values[vNum].opacityShift.w;
    opacity = textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;
  }

  var gofactor: f32 = 1.0;
  var normal: vec4<f32> = vec4<f32>(0.0,0.0,0.0,0.0);
  if (componentSSBO.values[rowStart].gomin <  1.0 || volumeSSBO.values[vNum].shade[0] > 0.0)
  {
    normal = getDependentGradient(vTex, tpos, vNum, numComp);
    if (componentSSBO.values[rowStart].gomin <  1.0)
    {
      gofactor = clamp(normal.a*componentSSBO.values[rowStart].goScale + componentSSBO.values[rowStart].goShift,
        componentSSBO.values[rowStart].gomin, componentSSBO.values[rowStart].gomax);
    }
  }

  let alpha = gofactor * opacity;
  if (enableShading && volumeSSBO.values[vNum].shade[0] > 0.0)
  {
    if (volumeSSBO.values[vNum].shade[1] > 0.0)
    {
      var opacityComponent: u32 = 0u;
      if (numComp == 2u) { opacityComponent = 1u; }
      if (numComp == 4u) { opacityComponent = 3u; }
      let opacityNormal = getOpacityGradient(
        vTex, tpos, vNum, opacityComponent, rowStart, gofactor);
      if (opacityNormal.w > 0.0)
      {
        normal = opacityNormal;
      }
    }
    color = applyAllLighting(vTex, fragPos, color, alpha, posVC, normal, vNum, rowStart);
  }

  outColor = vec4<f32>(color, alpha);

  return outColor;
}

fn processVolume(vTex: texture_3d<f32>, fragPos: vec4<f32>, vNum: i32, rowStart: i32, posSC: vec4<f32>, tfunRows: f32) -> vec4<f32>
{
  let tpos: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix * posSC;
  if (tpos.x < 0.0 || tpos.y < 0.0 || tpos.z < 0.0 ||
      tpos.x > 1.0 || tpos.y > 1.0 || tpos.z > 1.0)
  {
    return vec4<f32>(0.0);
  }
  let sample = getTextureValue(vTex, tpos, vNum);
  return processVolumeSample(
    vTex, fragPos, vNum, rowStart, posSC, tpos, sample, tfunRows, true);
}

// adjust the start and end point of a raycast such that it intersects the unit cube.
// This function is used to take a raycast starting point and step vector
// and numSteps and return the startijng and ending steps for intersecting the
// unit cube. Recall for a 3D texture, the unit cube is the range of texture coordsinates
// that have valid values. So this funtion can be used to take a ray in texture coordinates
// and bound it to intersecting the texture.
//
fn adjustBounds(tpos: vec4<f32>, tstep: vec4<f32>, numSteps: f32) -> vec2<f32>
{
  var result: vec2<f32> = vec2<f32>(0.0, numSteps);
  var tpos2: vec4<f32> = tpos + tstep*numSteps;

  // move tpos to the start of the volume
  var adjust: f32 =
    min(
      max(tpos.x/tstep.x, (tpos.x - 1.0)/tstep.x),
      min(
        max((tpos.y - 1.0)/tstep.y, tpos.y/tstep.y),
        max((tpos.z - 1.0)/tstep.z, tpos.z/tstep.z)));
  if (adjust < 0.0)
  {
    result.x = result.x - adjust;
  }

  // adjust length to the end
  adjust =
    max(
      min(tpos2.x/tstep.x, (tpos2.x - 1.0)/tstep.x),
      max(
        min((tpos2.y - 1.0)/tstep.y, tpos2.y/tstep.y),
        min((tpos2.z - 1.0)/tstep.z, tpos2.z/tstep.z)));
  if (adjust > 0.0)
  {
    result.y = result.y - adjust;
  }

  return result;
}

fn getSimpleColor(scalar: f32, rowIdx: i32, tfunRows: f32) -> vec4<f32>
{
  var coord: vec2<f32> =
    vec2<f32>(scalar * componentSSBO.values[rowIdx].cScale + componentSSBO.values[rowIdx].cShift,
      getTFunRowCoord(rowIdx, tfunRows));
  var color: vec4<f32> = textureSampleLevel(tfunTexture, clampSampler, coord, 0.0);
  coord.x = (scalar * componentSSBO.values[rowIdx].oScale + componentSSBO.values[rowIdx].oShift);
  var opacity: f32 = textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;
  return vec4<f32>(color.rgb, opacity);
}

fn getOpacity(scalar: f32, rowIdx: i32, tfunRows: f32) -> f32
{
  let coord = vec2<f32>(
    scalar * componentSSBO.values[rowIdx].oScale + componentSSBO.values[rowIdx].oShift,
    getTFunRowCoord(rowIdx, tfunRows)
  );
  return textureSampleLevel(ofunTexture, clampSampler, coord, 0.0).r;
}

fn getRadonColor(scalar: f32, rowIdx: i32, tfunRows: f32) -> vec4<f32>
{
  let coord = vec2<f32>(
    scalar * componentSSBO.values[rowIdx].cScale + componentSSBO.values[rowIdx].cShift,
    getTFunRowCoord(rowIdx, tfunRows)
  );
  let color = textureSampleLevel(tfunTexture, clampSampler, coord, 0.0).rgb;
  // Radon/ output is an opaque intensity image: the accumulated
  // attenuation is already encoded in the lookup coordinate, so alpha is 1.0.
  return vec4<f32>(color, 1.0);
}

fn traverseMax(vTex: texture_3d<f32>, vNum: i32, rowIdx: i32, rayLengthSC: f32, minPosSC: vec4<f32>, rayStepSC: vec4<f32>, fragPos: vec4<f32>)
{
  // convert to tcoords and reject if outside the volume
  var numSteps: f32 = rayLengthSC/mapperUBO.SampleDistance;
  var tpos: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*minPosSC;
  var tpos2: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*(minPosSC + rayStepSC);
  var tstep: vec4<f32> = tpos2 - tpos;

  var rayBounds: vec2<f32> = intersectRayBoundsWithClipPlanes(
    vNum,
    minPosSC,
    rayStepSC,
    adjustBounds(tpos, tstep, numSteps));

  // did we hit anything
  if (rayBounds.x >= rayBounds.y)
  {
    traverseVals[vNum] = vec4<f32>(0.0,0.0,0.0,0.0);
    return;
  }

  tpos = tpos + tstep*rayBounds.x;
  var curDist: f32 = rayBounds.x;
  // sample the entry point, then jitter the interior samples per fragment to
  // break up banding (matches the OpenGL mapper)
  var selectedValue = getTextureValue(vTex, tpos, vNum);
  var selectedTpos = tpos;
  var selectedPosSC = minPosSC + rayStepSC * rayBounds.x;
  let tfunRows: f32 = f32(textureDimensions(tfunTexture).y);
  if (rayBounds.y - rayBounds.x <= 1.0)
  {
    traverseVals[vNum] = processVolumeSample(
      vTex, fragPos, vNum, rowIdx,
      selectedPosSC, selectedTpos, selectedValue, tfunRows, false);
    return;
  }
  let jitter: f32 = 0.01 + 0.99 * getFragmentSeed(fragPos);
  tpos = tpos + tstep*jitter;
  curDist = curDist + jitter;
  loop
  {
    if (curDist + 1.0 >= rayBounds.y) { break; }
    let currentValue = getTextureValue(vTex, tpos, vNum);
    let nextValue = max(selectedValue, currentValue);
    if (any(nextValue != selectedValue))
    {
      selectedTpos = tpos;
      selectedPosSC = minPosSC + rayStepSC * curDist;
    }
    selectedValue = nextValue;

    // increment position
    curDist = curDist + 1.0;
    tpos = tpos + tstep;
  }

  let endTpos = tpos - tstep * curDist + tstep * rayBounds.y;
  let endValue = getTextureValue(vTex, endTpos, vNum);
  let finalValue = max(selectedValue, endValue);
  if (any(finalValue != selectedValue))
  {
    selectedTpos = endTpos;
    selectedPosSC = minPosSC + rayStepSC * rayBounds.y;
  }
  traverseVals[vNum] = processVolumeSample(
    vTex, fragPos, vNum, rowIdx, selectedPosSC, selectedTpos, finalValue, tfunRows, false);
}

fn traverseMin(vTex: texture_3d<f32>, vNum: i32, rowIdx: i32, rayLengthSC: f32, minPosSC: vec4<f32>, rayStepSC: vec4<f32>, fragPos: vec4<f32>)
{
  // convert to tcoords and reject if outside the volume
  var numSteps: f32 = rayLengthSC/mapperUBO.SampleDistance;
  var tpos: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*minPosSC;
  var tpos2: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*(minPosSC + rayStepSC);
  var tstep: vec4<f32> = tpos2 - tpos;

  var rayBounds: vec2<f32> = intersectRayBoundsWithClipPlanes(
    vNum,
    minPosSC,
    rayStepSC,
    adjustBounds(tpos, tstep, numSteps));

  // did we hit anything
  if (rayBounds.x >= rayBounds.y)
  {
    traverseVals[vNum] = vec4<f32>(0.0,0.0,0.0,0.0);
    return;
  }

  tpos = tpos + tstep*rayBounds.x;
  var curDist: f32 = rayBounds.x;
  // sample the entry point, then jitter the interior samples per fragment to
  // break up banding (matches the OpenGL mapper)
  var selectedValue = getTextureValue(vTex, tpos, vNum);
  var selectedTpos = tpos;
  var selectedPosSC = minPosSC + rayStepSC * rayBounds.x;
  let tfunRows: f32 = f32(textureDimensions(tfunTexture).y);
  if (rayBounds.y - rayBounds.x <= 1.0)
  {
    traverseVals[vNum] = processVolumeSample(
      vTex, fragPos, vNum, rowIdx,
      selectedPosSC, selectedTpos, selectedValue, tfunRows, false);
    return;
  }
  let jitter: f32 = 0.01 + 0.99 * getFragmentSeed(fragPos);
  tpos = tpos + tstep*jitter;
  curDist = curDist + jitter;
  loop
  {
    if (curDist + 1.0 >= rayBounds.y) { break; }
    let currentValue = getTextureValue(vTex, tpos, vNum);
    let nextValue = min(selectedValue, currentValue);
    if (any(nextValue != selectedValue))
    {
      selectedTpos = tpos;
      selectedPosSC = minPosSC + rayStepSC * curDist;
    }
    selectedValue = nextValue;

    // increment position
    curDist = curDist + 1.0;
    tpos = tpos + tstep;
  }

  let endTpos = tpos - tstep * curDist + tstep * rayBounds.y;
  let endValue = getTextureValue(vTex, endTpos, vNum);
  let finalValue = min(selectedValue, endValue);
  if (any(finalValue != selectedValue))
  {
    selectedTpos = endTpos;
    selectedPosSC = minPosSC + rayStepSC * rayBounds.y;
  }
  traverseVals[vNum] = processVolumeSample(
    vTex, fragPos, vNum, rowIdx, selectedPosSC, selectedTpos, finalValue, tfunRows, false);
}

fn valueWithinIPRange(sample: vec4<f32>, vNum: i32) -> bool
{
  let rangeMin = volumeSSBO.values[vNum].ipScalarRangeMin;
  let rangeMax = volumeSSBO.values[vNum].ipScalarRangeMax;
  let numComp = u32(volumeSSBO.values[vNum].componentInfo.x);
  let independent = volumeSSBO.values[vNum].componentInfo.y > 0.5;
  if (numComp > 1u && !independent)
  {
    return false;
  }
  for (var component: u32 = 0u; component < numComp; component = component + 1u)
  {
    let value = getComponent(sample, component);
    if (value < getComponent(rangeMin, component) ||
        value > getComponent(rangeMax, component))
    {
      return false;
    }
  }
  return true;
}

fn traverseAverage(vTex: texture_3d<f32>, vNum: i32, rowIdx: i32, rayLengthSC: f32, minPosSC: vec4<f32>, rayStepSC: vec4<f32>, fragPos: vec4<f32>)
{
  // convert to tcoords and reject if outside the volume
  var numSteps: f32 = rayLengthSC/mapperUBO.SampleDistance;
  var tpos: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*minPosSC;
  var tpos2: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*(minPosSC + rayStepSC);
  var tstep: vec4<f32> = tpos2 - tpos;

  var rayBounds: vec2<f32> = intersectRayBoundsWithClipPlanes(
    vNum,
    minPosSC,
    rayStepSC,
    adjustBounds(tpos, tstep, numSteps));

  // did we hit anything
  if (rayBounds.x >= rayBounds.y)
  {
    traverseVals[vNum] = vec4<f32>(0.0,0.0,0.0,0.0);
    return;
  }

  tpos = tpos + tstep*rayBounds.x;
  var curDist: f32 = rayBounds.x;
  let raySpan = rayBounds.y - rayBounds.x;
  let tfunRows: f32 = f32(textureDimensions(tfunTexture).y);
  let firstValue = getTextureValue(vTex, tpos, vNum);
  if (raySpan <= 1.0 && valueWithinIPRange(firstValue, vNum))
  {
    // Match the OpenGL mapper's effective coverage for a subsample projection
    // ray. Its rasterized entry/exit interval is 5/4 of the analytic interval
    // used by this fullscreen WebGPU pass.
    traverseVals[vNum] = processVolumeSample(
      vTex, fragPos, vNum, rowIdx,
      minPosSC + rayStepSC * rayBounds.x, tpos, firstValue, tfunRows, false);
    return;
  }

  var sum = vec4<f32>(0.0);
  var totalWeight: f32 = 0.0;
  let jitter: f32 = 0.01 + 0.99 * getFragmentSeed(fragPos);
  if (valueWithinIPRange(firstValue, vNum))
  {
    sum = sum + firstValue * jitter;
    totalWeight = totalWeight + jitter;
  }
  tpos = tpos + tstep*jitter;
  curDist = curDist + jitter;
  loop
  {
    if (curDist + 1.0 >= rayBounds.y) { break; }
    let sample = getTextureValue(vTex, tpos, vNum);
    if (valueWithinIPRange(sample, vNum))
    {
      sum = sum + sample;
      totalWeight = totalWeight + 1.0;
    }

    curDist = curDist + 1.0;
    tpos = tpos + tstep;
  }

  let endTpos = tpos - tstep * curDist + tstep * rayBounds.y;
  let endValue = getTextureValue(vTex, endTpos, vNum);
  if (valueWithinIPRange(endValue, vNum))
  {
    sum = sum + endValue * (rayBounds.y - curDist);
    totalWeight = totalWeight + rayBounds.y - curDist;
  }

  if (totalWeight <= 0.0)
  {
    traverseVals[vNum] = vec4<f32>(0.0,0.0,0.0,0.0);
    return;
  }

  // WebGL leaves alpha unscaled here because only RGB components are averaged
  // by its vec4 divisor.
  let average = vec4<f32>(sum.rgb / totalWeight, sum.a);
  traverseVals[vNum] = processVolumeSample(
    vTex, fragPos, vNum, rowIdx,
    minPosSC + rayStepSC * rayBounds.y, endTpos, average, tfunRows, false);
}

fn traverseAdditive(vTex: texture_3d<f32>, vNum: i32, rowIdx: i32, rayLengthSC: f32, minPosSC: vec4<f32>, rayStepSC: vec4<f32>, fragPos: vec4<f32>)
{
  // convert to tcoords and reject if outside the volume
  var numSteps: f32 = rayLengthSC/mapperUBO.SampleDistance;
  var tpos: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*minPosSC;
  var tpos2: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*(minPosSC + rayStepSC);
  var tstep: vec4<f32> = tpos2 - tpos;

  var rayBounds: vec2<f32> = intersectRayBoundsWithClipPlanes(
    vNum,
    minPosSC,
    rayStepSC,
    adjustBounds(tpos, tstep, numSteps));

  // did we hit anything
  if (rayBounds.x >= rayBounds.y)
  {
    traverseVals[vNum] = vec4<f32>(0.0,0.0,0.0,0.0);
    return;
  }

  tpos = tpos + tstep*rayBounds.x;
  var curDist: f32 = rayBounds.x;
  let raySpan = rayBounds.y - rayBounds.x;
  let tfunRows: f32 = f32(textureDimensions(tfunTexture).y);
  let firstValue = getTextureValue(vTex, tpos, vNum);
  if (raySpan <= 1.0)
  {
    traverseVals[vNum] = processVolumeSample(
      vTex, fragPos, vNum, rowIdx,
      minPosSC + rayStepSC * rayBounds.x, tpos, firstValue, tfunRows, false);
    return;
  }

  var sum = vec4<f32>(0.0);
  let jitter: f32 = 0.01 + 0.99 * getFragmentSeed(fragPos);
  if (valueWithinIPRange(firstValue, vNum))
  {
    sum = sum + firstValue * jitter;
  }
  tpos = tpos + tstep*jitter;
  curDist = curDist + jitter;
  loop
  {
    if (curDist + 1.0 >= rayBounds.y) { break; }
    let sample = getTextureValue(vTex, tpos, vNum);
    if (valueWithinIPRange(sample, vNum))
    {
      sum = sum + sample;
    }
    curDist = curDist + 1.0;
    tpos = tpos + tstep;
  }

  let endTpos = tpos - tstep * curDist + tstep * rayBounds.y;
  let endValue = getTextureValue(vTex, endTpos, vNum);
  if (valueWithinIPRange(endValue, vNum))
  {
    sum = sum + endValue * (rayBounds.y - curDist);
  }
  traverseVals[vNum] = processVolumeSample(
    vTex, fragPos, vNum, rowIdx,
    minPosSC + rayStepSC * rayBounds.y, endTpos, sum, tfunRows, false);
}

// Radon: accumulate attenuation along the ray to produce a
// "normalized ray intensity" that is then mapped through the transfer function
// by getRadonColor. The result is an opaque intensity image (alpha is always
// 1.0), so no opacity is composited here.
//
// Port of the OpenGL mapper's RADON_TRANSFORM_BLEND path: the ray start is
// jittered per fragment to break up banding, and the leading/trailing partial
// samples are weighted by their fractional step length so thin slabs and ray
// endpoints integrate correctly (rather than marching uniform integer steps).
fn traverseRadon(vTex: texture_3d<f32>, vNum: i32, rowIdx: i32, rayLengthSC: f32, minPosSC: vec4<f32>, rayStepSC: vec4<f32>, fragPos: vec4<f32>)
{
  // convert to tcoords and reject if outside the volume
  var numSteps: f32 = rayLengthSC/mapperUBO.SampleDistance;
  let tpos0: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*minPosSC;
  var tpos2: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*(minPosSC + rayStepSC);
  var tstep: vec4<f32> = tpos2 - tpos0;

  var rayBounds: vec2<f32> = adjustBounds(tpos0, tstep, numSteps);

  // did we hit anything
  if (rayBounds.x >= rayBounds.y)
  {
    traverseVals[vNum] = vec4<f32>(0.0,0.0,0.0,0.0);
    return;
  }

  let tfunRows: f32 = f32(textureDimensions(tfunTexture).y);
  let raySpan: f32 = rayBounds.y - rayBounds.x;
  let sampleDistance: f32 = mapperUBO.SampleDistance;

  // Thin volumes can intersect the ray across less than a full sample step.
  if (raySpan <= 1.0)
  {
    let scalar: f32 = getTraverseValue(getTextureValue(vTex, tpos0 + tstep*rayBounds.x, vNum), vNum);
    let intensity = 1.0 - raySpan * sampleDistance * getOpacity(scalar, rowIdx, tfunRows);
    traverseVals[vNum] = getRadonColor(intensity, rowIdx, tfunRows);
    return;
  }

  let jitter: f32 = getFragmentSeed(fragPos);
  var normalizedRayIntensity: f32 = 1.0;

  // Leading partial sample at the entry point, weighted by the jitter offset.
  var tpos: vec4<f32> = tpos0 + tstep*rayBounds.x;
  let firstScalar: f32 = getTraverseValue(getTextureValue(vTex, tpos, vNum), vNum);
  normalizedRayIntensity = normalizedRayIntensity -
    jitter * sampleDistance * getOpacity(firstScalar, rowIdx, tfunRows);

  // Offset the start by the jitter so the interior samples are dithered.
  var curStep: f32 = rayBounds.x + jitter;
  tpos = tpos + tstep*jitter;

  // Full interior steps.
  loop
  {
    if (curStep + 1.0 >= rayBounds.y) { break; }
    let scalar: f32 = getTraverseValue(getTextureValue(vTex, tpos, vNum), vNum);
    normalizedRayIntensity = normalizedRayIntensity -
      sampleDistance * getOpacity(scalar, rowIdx, tfunRows);
    curStep = curStep + 1.0;
    tpos = tpos + tstep;
  }

  // Trailing partial sample at the clamped exit point.
  let remaining: f32 = rayBounds.y - curStep;
  if (remaining > 0.0)
  {
    var endPos: vec4<f32> = tpos0 + tstep*rayBounds.y;
    endPos = vec4<f32>(clamp(endPos.xyz, vec3<f32>(0.0), vec3<f32>(1.0)), 1.0);
    let endScalar: f32 = getTraverseValue(getTextureValue(vTex, endPos, vNum), vNum);
    normalizedRayIntensity = normalizedRayIntensity -
      remaining * sampleDistance * getOpacity(endScalar, rowIdx, tfunRows);
  }

  traverseVals[vNum] = getRadonColor(normalizedRayIntensity, rowIdx, tfunRows);
}

// Labelmap edge projection (LABELMAP_EDGE_PROJECTION_BLEND). Expects a two
// component volume: component 0 holds the image intensity and component 1
// the segment labels. The center ray does a maximum intensity projection of
// component 0 while collecting every segment index it crosses into a
// bitmask. For each collected segment, rays march again from the screen
// neighbors within the per segment outline thickness; when a neighbor ray
// never crosses the segment the fragment lies on the segment's projected
// edge and takes the segment's color from its own transfer function row.
var<private> labelEdgeSegmentBits: array<u32, 8>;

fn setLabelEdgeBit(segmentIndex: i32)
{
  if (segmentIndex > 0 && segmentIndex < 256)
  {
    labelEdgeSegmentBits[segmentIndex / 32] =
      labelEdgeSegmentBits[segmentIndex / 32] | (1u << u32(segmentIndex % 32));
  }
}

fn isLabelEdgeBitSet(segmentIndex: i32) -> bool
{
  return (labelEdgeSegmentBits[segmentIndex / 32] &
    (1u << u32(segmentIndex % 32))) != 0u;
}

// project a viewport tcoord (0..1) at the given NDC depth to SC coordinates
fn labelEdgeTcoordToSC(tcoord: vec2<f32>, fragZ: f32) -> vec4<f32>
{
  var scPos = rendererUBO.PCSCMatrix *
    vec4<f32>(2.0 * tcoord.x - 1.0, 1.0 - 2.0 * tcoord.y, fragZ, 1.0);
  return scPos * (1.0 / scPos.w);
}

// march the ray cast from a neighboring fragment and report whether it never
// crosses the given segment (true = the center fragment is on an edge with
// respect to this neighbor). The neighbor ray marches its own volume bounds
// front to back, covering the same span through the volume as the center ray.
fn labelEdgeNeighborMissesSegment(
  vTex: texture_3d<f32>, vNum: i32, segmentIndex: i32,
  minPosSC: vec4<f32>, rayStepSC: vec4<f32>, numSteps: f32) -> bool
{
  let labelScale: f32 = volumeSSBO.values[vNum].labelOutline.z;
  var tpos: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix * minPosSC;
  let tpos2: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix * (minPosSC + rayStepSC);
  let tstep: vec4<f32> = tpos2 - tpos;

  let rayBounds: vec2<f32> = adjustBounds(tpos, tstep, numSteps);
  if (rayBounds.x >= rayBounds.y)
  {
    return true;
  }

  tpos = tpos + tstep * rayBounds.x;
  var curDist: f32 = rayBounds.x;
  loop
  {
    let sample: vec4<f32> = getTextureValue(vTex, tpos, vNum);
    if (i32(round(sample.y * labelScale)) == segmentIndex)
    {
      return false;
    }
    curDist = curDist + 1.0;
    tpos = tpos + tstep;
    if (curDist > rayBounds.y) { break; }
  }
  return true;
}

fn traverseLabelEdge(vTex: texture_3d<f32>, vNum: i32, rowIdx: i32, segRowIdx: i32, rayLengthSC: f32, minPosSC: vec4<f32>, rayStepSC: vec4<f32>, fragPos: vec4<f32>, tcoord: vec2<f32>, fragZ: f32)
{
  // convert to tcoords and reject if outside the volume
  var numSteps: f32 = rayLengthSC/mapperUBO.SampleDistance;
  var tpos: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*minPosSC;
  var tpos2: vec4<f32> = volumeSSBO.values[vNum].SCTCMatrix*(minPosSC + rayStepSC);
  var tstep: vec4<f32> = tpos2 - tpos;

  var rayBounds: vec2<f32> = intersectRayBoundsWithClipPlanes(
    vNum,
    minPosSC,
    rayStepSC,
    adjustBounds(tpos, tstep, numSteps));

  // did we hit anything
  if (rayBounds.x >= rayBounds.y)
  {
    traverseVals[vNum] = vec4<f32>(0.0,0.0,0.0,0.0);
    return;
  }

  let tfunRows: f32 = f32(textureDimensions(tfunTexture).y);
  // scale to recover the raw label value from the normalized sample
  let labelScale: f32 = volumeSSBO.values[vNum].labelOutline.z;

  // clear the segment bitmask (private vars are zero initialized once per
  // invocation, but several volumes can share this blend mode)
  for (var w: i32 = 0; w < 8; w = w + 1) { labelEdgeSegmentBits[w] = 0u; }

  // maximum intensity projection of component 0 along the center ray while
  // collecting the segment indices (component 1) it crosses
  tpos = tpos + tstep*rayBounds.x;
  var curDist: f32 = rayBounds.x;
  var sample: vec4<f32> = getTextureValue(vTex, tpos, vNum);
  var maxVal: f32 = sample.x;
  var segmentIndex: i32 = i32(round(sample.y * labelScale));
  var seenNonZero: bool = segmentIndex != 0;
  setLabelEdgeBit(segmentIndex);

  // handle very thin volumes
  if (rayBounds.y - rayBounds.x <= 1.0)
  {
    traverseVals[vNum] = getSimpleColor(maxVal, rowIdx, tfunRows);
    return;
  }

  // jitter the interior samples per fragment to break up banding
  let jitter: f32 = 0.01 + 0.99 * getFragmentSeed(fragPos);
  tpos = tpos + tstep*jitter;
  curDist = curDist + jitter;
  loop
  {
    sample = getTextureValue(vTex, tpos, vNum);
    maxVal = max(maxVal, sample.x);
    segmentIndex = i32(round(sample.y * labelScale));
    if (segmentIndex != 0)
    {
      seenNonZero = true;
      setLabelEdgeBit(segmentIndex);
    }

    // increment position
    curDist = curDist + 1.0;
    tpos = tpos + tstep;

    // check if we have reached a terminating condition
    if (curDist > rayBounds.y) { break; }
  }

  // the ray never crossed a segment: output the projected image value
  if (!seenNonZero)
  {
    traverseVals[vNum] = getSimpleColor(maxVal, rowIdx, tfunRows);
    return;
  }

  // SC offsets of one fragment step in x and y at the ray entry depth; the
  // neighbor rays reuse the center ray's step direction and length
  let fragStep: vec2<f32> = vec2<f32>(1.0, 1.0) / rendererUBO.viewportSize;
  let baseSC: vec4<f32> = labelEdgeTcoordToSC(tcoord, fragZ);
  let deltaXSC: vec4<f32> =
    labelEdgeTcoordToSC(tcoord + vec2<f32>(fragStep.x, 0.0), fragZ) - baseSC;
  let deltaYSC: vec4<f32> =
    labelEdgeTcoordToSC(tcoord + vec2<f32>(0.0, fragStep.y), fragZ) - baseSC;

  // used to skip the full neighborhood scan when the fragments are small
  // relative to the voxels (zoomed out), in which case the four corner
  // checks below already catch every edge fragment
  let volSpacing: vec4<f32> = volumeSSBO.values[vNum].spacing;
  let minVoxelSpacing: f32 = min(volSpacing.x, min(volSpacing.y, volSpacing.z));
  let minFragSpacing: f32 = min(length(deltaXSC.xyz), length(deltaYSC.xyz));

  for (var s: i32 = 1; s < 256; s = s + 1)
  {
    // bail out quickly if the segment was not seen by the center ray
    if (!isLabelEdgeBitSet(s))
    {
      continue;
    }

    let actualThickness: i32 = getLabelOutlineThickness(vNum, s);
    if (actualThickness <= 0)
    {
      continue;
    }

    // check the extreme corners of the neighborhood first since there is a
    // better chance of finding the edge there, letting us bail out before
    // the full neighborhood scan
    let t: f32 = f32(actualThickness);
    var onEdge: bool =
      labelEdgeNeighborMissesSegment(vTex, vNum, s, minPosSC - t*deltaXSC - t*deltaYSC, rayStepSC, numSteps) ||
      labelEdgeNeighborMissesSegment(vTex, vNum, s, minPosSC + t*deltaXSC + t*deltaYSC, rayStepSC, numSteps) ||
      labelEdgeNeighborMissesSegment(vTex, vNum, s, minPosSC + t*deltaXSC - t*deltaYSC, rayStepSC, numSteps) ||
      labelEdgeNeighborMissesSegment(vTex, vNum, s, minPosSC - t*deltaXSC + t*deltaYSC, rayStepSC, numSteps);

    // the full scan runs only when the fragments are small enough relative
    // to the voxels that an edge can pass between the corners; otherwise the
    // corner checks above already caught every edge fragment (zoomed out)
    if (!onEdge &&
        minVoxelSpacing <= (2.0 * t - 1.0) * minFragSpacing)
    {
      // loop through the rest, skipping the processed corners and the center
      for (var i: i32 = -actualThickness; i <= actualThickness && !onEdge; i = i + 1)
      {
        for (var j: i32 = -actualThickness; j <= actualThickness && !onEdge; j = j + 1)
        {
          if ((i == 0 && j == 0) ||
              (abs(i) == actualThickness && abs(j) == actualThickness))
          {
            continue;
          }
          onEdge = labelEdgeNeighborMissesSegment(
            vTex, vNum, s,
            minPosSC + f32(i)*deltaXSC + f32(j)*deltaYSC, rayStepSC, numSteps);
        }
      }
    }

    if (onEdge)
    {
      // edge fragment: emit the segment's color and opacity from the label
      // component's transfer function row
      traverseVals[vNum] = getSimpleColor(f32(s) / labelScale, segRowIdx, tfunRows);
      return;
    }
  }

  // interior fragment: fall back to the projected image value
  traverseVals[vNum] = getSimpleColor(maxVal, rowIdx, tfunRows);
}

// opacity correction for samples that cover less than a full sample step
// (thin volumes / slabs and the trailing partial step), like the OpenGL
// mapper's 1-pow(1-a, raySteps) handling
fn correctSampleAlpha(alpha: f32, stepWeight: f32) -> f32
{
  if (stepWeight >= 1.0)
  {
    return alpha;
  }
  return 1.0 - pow(1.0 - alpha, max(stepWeight, 0.0));
}

fn composite(fragPos: vec4<f32>, tcoord: vec2<f32>, fragZ: f32, rayLengthSC: f32, minPosSC: vec4<f32>, rayStepSC: vec4<f32>) -> vec4<f32>
{
  var numSteps: f32 = rayLengthSC/mapperUBO.SampleDistance;

  var rayPosSC: vec4<f32> = minPosSC;

  // how many rows (tfuns) do we have in our tfunTexture
  var tfunRows: f32 = f32(textureDimensions(tfunTexture).y);

  var curDist: f32 = 0.0;
  var computedColor: vec4<f32> = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  var sampleColor: vec4<f32>;
  // combined sample of all volumes at the current step
  var stepColor: vec4<f32> = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  // fraction of a full sample step the current sample covers. This is driven
  // by a coverage cursor from the segment start (the jitter only shifts the
  // sample position, not the covered length) so the total opacity matches
  // the OpenGL mapper's 1-pow(1-a, raySteps) behaviour for thin slabs.
  var stepWeight: f32 = 1.0;
  var coveredSteps: f32 = 0.0;
  // union of the per volume ray bounds (in steps), accumulated by the
  // generated TraverseInit code below
  var unionBounds: vec2<f32> = vec2<f32>(1.0e37, -1.0e37);
//VTK::Volume::TraverseCalls
//VTK::Volume::TraverseInit

  // Advance the ray to the first volume intersection and stop at the last
  // one, like the OpenGL mapper which intersects the volume box before
  // marching. Without this, rays shorter than a sample step (thin slabs)
  // take their single sample at the ray start, which can lie outside a
  // volume that only begins partway through the slab, cutting its edge.
  let clampedStart: f32 = max(0.0, unionBounds.x);
  let clampedEnd: f32 = min(numSteps, unionBounds.y);
  if (clampedEnd <= clampedStart) { return computedColor; }
  // Decide jitter from the clipped interval, not the untrimmed camera ray.
  // A thin MPR slab is often shorter than one sample even when the camera
  // ray is very long; jittering that slab skips it for random fragments.
  let clippedSteps: f32 = clampedEnd - clampedStart;
  let jitter: f32 = select(
    0.01 + 0.99 * getFragmentSeed(fragPos),
    0.0,
    clippedSteps <= 1.0);
  curDist = (clampedStart + jitter) * mapperUBO.SampleDistance;
  rayPosSC = minPosSC + rayStepSC * (clampedStart + jitter);
  coveredSteps = clampedStart;
  let endDist: f32 = clampedEnd * mapperUBO.SampleDistance;

  loop
  {
    stepWeight = min(1.0, clampedEnd - coveredSteps);
    coveredSteps = coveredSteps + stepWeight;
    stepColor = vec4<f32>(0.0, 0.0, 0.0, 0.0);

    // for each volume, sample and accumulate color
//VTK::Volume::CompositeCalls

    // increment position
    curDist = curDist + mapperUBO.SampleDistance;
    rayPosSC = rayPosSC + rayStepSC;

    // check if we have reached a terminating condition
    if (curDist > endDist) { break; }
    if (computedColor.a > 0.98) { break; }
  }
  return computedColor;
}

@fragment
fn main(
//VTK::IOStructs::Input
)
//VTK::IOStructs::Output
{
  var output: fragmentOutput;

  // the depth bounds textures store 1 - depth so the r16float values keep
  // their precision near the camera (see the VolumePass depth range encoder)
  var rayMax: f32 = 1.0 - textureSampleLevel(maxTexture, clampSampler, input.tcoordVS, 0.0).r;
  var rayMin: f32 = 1.0 - textureSampleLevel(minTexture, clampSampler, input.tcoordVS, 0.0).r;

  // Parallel cameras may legitimately use a clipping range that crosses the
  // camera plane. With a large range, the volume can occupy about one
  // representable step in the r16float depth-bound textures. Pad such an
  // interval around its measured center instead of using the full clipping
  // range, which would lose precision again in the f32 ray coordinates. The
  // analytic per-volume bounds intersection below trims the padded ray.
  if (rendererUBO.cameraParallel != 0u && mapperUBO.CamNear < 0.0 &&
      rayMax - rayMin < 0.001)
  {
    let rayCenter = 0.5 * (rayMax + rayMin);
    rayMax = min(1.0, rayCenter + 0.001);
    rayMin = max(0.0, rayCenter - 0.001);
  }

  // If the camera near plane cuts into the volume (e.g. MPR slab slicing or
  // fly-through), the front faces of the depth bounds geometry are clipped
  // away and only exit fragments remain (entry == exit). Restart the ray at
  // the near plane (depth 1.0 in reversed-z) like the OpenGL mapper, which
  // casts from the near plane and intersects the volume in the shader; the
  // per-volume bounds intersection below trims the ray to the volume.
  if (rayMax <= rayMin && rayMin < 1.0)
  {
    rayMax = 1.0;
  }

  // No depth bounds at all: nearly edge-on cube faces can rasterize to
  // nothing at the silhouette (especially when the near plane cuts into the
  // volume), visibly clipping the volume edge versus the OpenGL mapper,
  // which intersects the volume analytically from a full screen quad. Seed
  // such rays with the full clipping range instead of discarding; the
  // per volume bounds intersection exits early when nothing is hit.
  if (rayMax <= rayMin)
  {
    rayMax = 1.0;
    rayMin = select(mapperUBO.CamNear / mapperUBO.CamFar, 0.0,
      rendererUBO.cameraParallel != 0u);
  }

  // discard empty rays
  if (rayMax <= rayMin) { discard; }
  else
  {
    // compute start and end ray positions in view coordinates
    var minPosSC: vec4<f32> = rendererUBO.PCSCMatrix*vec4<f32>(2.0 * input.tcoordVS.x - 1.0, 1.0 - 2.0 * input.tcoordVS.y, rayMax, 1.0);
    minPosSC = minPosSC * (1.0 / minPosSC.w);
    var maxPosSC: vec4<f32> = rendererUBO.PCSCMatrix*vec4<f32>(2.0 * input.tcoordVS.x - 1.0, 1.0 - 2.0 * input.tcoordVS.y, rayMin, 1.0);
    maxPosSC = maxPosSC * (1.0 / maxPosSC.w);

    // Clamp the ray segment to the camera clipping range in view coordinates
    // (like the OpenGL mapper's camNear/camThick clamp). The projection is
    // reversed-z with an infinite far plane in perspective, so the depth
    // bounds geometry is never clipped against the far plane, and the r16float
    // depth bounds are too coarse near 1.0 to clamp in depth space. This is
    // what makes thin camera clipping ranges render as slices like they do in WebGL.
    let entryZVC: f32 = (rendererUBO.SCVCMatrix * minPosSC).z;
    let exitZVC: f32 = (rendererUBO.SCVCMatrix * maxPosSC).z;
    let zRangeVC: f32 = exitZVC - entryZVC;
    if (abs(zRangeVC) > 1.0e-10)
    {
      let tNear: f32 = (-mapperUBO.CamNear - entryZVC) / zRangeVC;
      let tFar: f32 = (-mapperUBO.CamFar - entryZVC) / zRangeVC;
      let t0: f32 = max(0.0, tNear);
      let t1: f32 = min(1.0, tFar);
      if (t0 >= t1) { discard; }
      let raySpanSC: vec4<f32> = maxPosSC - minPosSC;
      maxPosSC = minPosSC + t1 * raySpanSC;
      minPosSC = minPosSC + t0 * raySpanSC;
    }

    var rayLengthSC: f32 = distance(minPosSC.xyz, maxPosSC.xyz);
    var rayStepSC: vec4<f32> = (maxPosSC - minPosSC)*(mapperUBO.SampleDistance/rayLengthSC);
    rayStepSC.w = 0.0;

    var computedColor: vec4<f32>;

//VTK::Volume::Loop

//VTK::RenderEncoder::Impl
  }

  return output;
}
`,Pe=new Float64Array(16),ft=new Float64Array(16),Wv=new Float64Array(16),kc=new Float64Array(16),Av=new Float64Array(3),Pv=new Float64Array(3);function PV(t,e){e.classHierarchy.push("vtkWebGPUVolumePassFSQ"),t.replaceShaderPosition=(a,i,s)=>{let o=i.getShaderDescription("vertex");o.addBuiltinOutput("vec4<f32>","@builtin(position) Position");let c=o.getCode();c=Te.substitute(c,"//VTK::Position::Impl",["output.tcoordVS = vec2<f32>(vertexBC.x * 0.5 + 0.5, 1.0 - vertexBC.y * 0.5 - 0.5);","output.Position = vec4<f32>(vertexBC, 1.0);"]).result,o.setCode(c),i.getShaderDescription("fragment").addBuiltinInput("vec4<f32>","@builtin(position) fragPos")},e.shaderReplacements.set("replaceShaderPosition",t.replaceShaderPosition),t.replaceShaderVolume=(a,i,s)=>{let o=i.getShaderDescription("fragment"),c=o.getCode(),f=[],u=[];for(let x=0;x<e.volumes.length;x++){let S=e.volumes[x].getRenderable(),T=S.getMapper(),d=T.getBlendMode(),C=T.getInputData()?.getPointData()?.getScalars()?.getNumberOfComponents?.(),w=d===qe.COMPOSITE_BLEND&&S.getProperty().getUseLabelOutline()&&C===1;d===qe.COMPOSITE_BLEND&&(u.push(`  var tpos${x}: vec4<f32> = volumeSSBO.values[${x}].SCTCMatrix*minPosSC;`),u.push(`  var tpos2_${x}: vec4<f32> = volumeSSBO.values[${x}].SCTCMatrix*(minPosSC + rayStepSC);`),u.push(`  var tstep${x}: vec4<f32> = tpos2_${x} - tpos${x};`),u.push(`  var rayBounds${x}: vec2<f32> = intersectRayBoundsWithClipPlanes(${x}, minPosSC, rayStepSC, adjustBounds(tpos${x}, tstep${x}, numSteps));`),u.push(`  if (rayBounds${x}.x < rayBounds${x}.y) {
    unionBounds = vec2<f32>(min(unionBounds.x, rayBounds${x}.x), max(unionBounds.y, rayBounds${x}.y));
  }`),w&&u.push(`  let labelColor${x}: vec4<f32> = getColorForLabelOutline(volTexture${x}, tcoord, fragZ, ${x}, ${e.rowStarts[x]}, tfunRows);`),f.push(`    if (curDist >= rayBounds${x}.x * mapperUBO.SampleDistance && curDist <= rayBounds${x}.y * mapperUBO.SampleDistance) {`),w?f.push(`      sampleColor = labelColor${x};`):f.push(`      sampleColor = processVolume(volTexture${x}, fragPos, ${x}, ${e.rowStarts[x]}, rayPosSC, tfunRows);`),f.push("      sampleColor.a = correctSampleAlpha(sampleColor.a, stepWeight);"),f.push(`      stepColor = vec4<f32>(
          sampleColor.a * sampleColor.rgb + (1.0 - sampleColor.a) * stepColor.rgb,
          sampleColor.a + (1.0 - sampleColor.a) * stepColor.a);`),f.push("    }"))}f.length&&f.push(`    computedColor = vec4<f32>(
        stepColor.rgb * (1.0 - computedColor.a) + computedColor.rgb,
        (1.0 - computedColor.a) * stepColor.a + computedColor.a);`),c=Te.substitute(c,"//VTK::Volume::CompositeCalls",f).result,c=Te.substitute(c,"//VTK::Volume::TraverseCalls",[]).result,c=Te.substitute(c,"//VTK::Volume::TraverseInit",u).result,c=Te.substitute(c,"//VTK::Volume::TraverseDec",[`var<private> traverseVals: array<vec4<f32>,${e.volumes.length}>;`]).result;let g=(x,S)=>{let T="rayLengthSC, minPosSC, rayStepSC, input.fragPos";switch(S){case qe.MAXIMUM_INTENSITY_BLEND:return`    traverseMax(volTexture${x}, ${x}, ${e.rowStarts[x]}, ${T});`;case qe.MINIMUM_INTENSITY_BLEND:return`    traverseMin(volTexture${x}, ${x}, ${e.rowStarts[x]}, ${T});`;case qe.AVERAGE_INTENSITY_BLEND:return`    traverseAverage(volTexture${x}, ${x}, ${e.rowStarts[x]}, ${T});`;case qe.ADDITIVE_INTENSITY_BLEND:return`    traverseAdditive(volTexture${x}, ${x}, ${e.rowStarts[x]}, ${T});`;case qe.RADON_TRANSFORM_BLEND:return`    traverseRadon(volTexture${x}, ${x}, ${e.rowStarts[x]}, ${T});`;case qe.LABELMAP_EDGE_PROJECTION_BLEND:{let d=e.volumes[x].getRenderable(),C=d.getMapper().getInputData()?.getPointData()?.getScalars()?.getNumberOfComponents?.(),w=d.getProperty().getIndependentComponents()&&C>=2,D=e.rowStarts[x]+(w?1:0);return w||Uc("LABELMAP_EDGE_PROJECTION_BLEND expects a two component volume (image + labels) with independent components enabled."),`    traverseLabelEdge(volTexture${x}, ${x}, ${e.rowStarts[x]}, ${D}, ${T}, input.tcoordVS, rayMax);`}default:return null}},l=e.volumes.map(x=>x.getRenderable().getMapper().getBlendMode()),h=l.some(x=>x===qe.COMPOSITE_BLEND),y=l.some(x=>x!==qe.COMPOSITE_BLEND),p=h&&y,v=!1;for(let x=0;x<e.volumes.length;x++){let S=l[x],T=[];if(S===qe.COMPOSITE_BLEND){if(v)continue;v=!0,p?T.push("    let compositeLayer: vec4<f32> = composite(input.fragPos, input.tcoordVS, rayMax, rayLengthSC, minPosSC, rayStepSC);",`    computedColor = vec4<f32>(
      compositeLayer.rgb + (1.0 - compositeLayer.a) * computedColor.rgb,
      compositeLayer.a + (1.0 - compositeLayer.a) * computedColor.a);`):T.push("    computedColor = composite(input.fragPos, input.tcoordVS, rayMax, rayLengthSC, minPosSC, rayStepSC);")}else{let d=g(x,S);if(!d){Uc(`WebGPU volume rendering does not support blend mode ${S} yet; volume ${x} will not be rendered.`);continue}T.push(d),p?T.push(`    let layer${x}: vec4<f32> = traverseVals[${x}];`,`    computedColor = vec4<f32>(
      layer${x}.rgb * layer${x}.a + (1.0 - layer${x}.a) * computedColor.rgb,
      layer${x}.a + (1.0 - layer${x}.a) * computedColor.a);`):T.push(`    computedColor = traverseVals[${x}];`)}T.push("//VTK::Volume::Loop"),c=Te.substitute(c,"//VTK::Volume::Loop",T).result}p&&(c=Te.substitute(c,"//VTK::Volume::Loop",["    if (computedColor.a > 0.0) {","      computedColor = vec4<f32>(computedColor.rgb / computedColor.a, computedColor.a);","    }"]).result),o.setCode(c)},e.shaderReplacements.set("replaceShaderVolume",t.replaceShaderVolume),t.updateLUTImage=a=>{let i=t.getMTime(),s=[];for(let l=0;l<e.volumes.length;l++){let h=e.volumes[l].getRenderable(),y=h.getMapper().getInputData(),p=h.getProperty(),v=[h.getMTime(),h.getMapper().getMTime(),y.getMTime(),p.getMTime()],x=y.getPointData()&&y.getPointData().getScalars(),S=x?x.getNumberOfComponents():1,T=p.getUseIndependentComponents(S)?S:1;for(let d=0;d<T;d++)v.push(p.getRGBTransferFunction(d).getMTime(),p.getScalarOpacity(d).getMTime());s.push(v.join(".")),i=Math.max(i,...v)}if(i<e.lutBuildTime.getMTime()&&e.lutSampleDist===e.sampleDist)return;e.colorRowLength=Math.max(1,...e.volumes.map(l=>l.getRenderable().getMapper().getColorTextureWidth())),e.opacityRowLength=Math.max(1,...e.volumes.map(l=>l.getRenderable().getMapper().getOpacityTextureWidth())),e.numRows=0,e.rowStarts=[];for(let l=0;l<e.volumes.length;l++){e.rowStarts.push(e.numRows);let h=e.volumes[l].getRenderable(),y=h.getMapper(),p=h.getProperty(),v=y.getInputData(),x=(v.getPointData()&&v.getPointData().getScalars()).getNumberOfComponents(),S=p.getUseIndependentComponents(x)?x:1;e.numRows+=S}let o=new Uint8ClampedArray(e.numRows*2*e.colorRowLength*4),c=new Float32Array(e.numRows*2*e.opacityRowLength),f=0,u=new Float32Array(Math.max(e.colorRowLength*3,e.opacityRowLength));for(let l=0;l<e.volumes.length;l++){let h=e.volumes[l].getRenderable(),y=h.getMapper(),p=h.getProperty(),v=y.getInputData(),x=(v.getPointData()&&v.getPointData().getScalars()).getNumberOfComponents(),S=p.getUseIndependentComponents(x),T=S?x:1;for(let d=0;d<T;++d){let C=S?d:0,w=S?d:0,D=p.getRGBTransferFunction(C),m=D.getRange();D.getTable(m[0],m[1],e.colorRowLength,u,1);let M=f*e.colorRowLength*4;for(let N=0;N<e.colorRowLength;++N){o[M+N*4]=255*u[N*3],o[M+N*4+1]=255*u[N*3+1],o[M+N*4+2]=255*u[N*3+2],o[M+N*4+3]=255;for(let _=0;_<4;_++)o[M+(e.colorRowLength+N)*4+_]=o[M+N*4+_]}let R=p.getScalarOpacity(w),E=e.sampleDist/p.getScalarOpacityUnitDistance(w),V=R.getRange();R.getTable(V[0],V[1],e.opacityRowLength,u,1),M=f*e.opacityRowLength;for(let N=0;N<e.opacityRowLength;++N)c[M+N]=1-(1-u[N])**E,c[M+N+e.opacityRowLength]=c[M+N];f+=2}}let g=`${s.join("|")}-${e.numRows}`;{let l={hash:`volumeColorLUT-${e.colorRowLength}-${g}`,nativeArray:o,width:e.colorRowLength,height:e.numRows*2,depth:1,format:"rgba8unorm"},h=a.getTextureManager().getTexture(l).createView("tfunTexture");e.textureViews[2]=h}{let l={hash:`volumeOpacityLUT-${e.opacityRowLength}-${e.sampleDist}-${g}`,nativeArray:c,width:e.opacityRowLength,height:e.numRows*2,depth:1,format:"r16float"},h=a.getTextureManager().getTexture(l).createView("ofunTexture");e.textureViews[3]=h}e.lutSampleDist=e.sampleDist,e.lutBuildTime.modified()},t.updateSSBO=a=>{let i=e.WebGPURenderer.getRenderable(),s=i.getActiveCamera(),o=e.WebGPURenderer.getViewNodeFor(s),c=o.getKeyMatrices(e.WebGPURenderer),f=Math.max(t.getMTime(),e.WebGPURenderer.getStabilizedTime(),i.getMTime(),s.getMTime(),o.getMTime());for(let P=0;P<e.volumes.length;P++){let H=e.volumes[P].getRenderable(),fe=H.getMapper(),pe=fe.getInputData(),He=H.getProperty();f=Math.max(f,H.getMTime(),pe.getMTime(),fe.getMTime(),fe.getClippingPlanesMTime(),He.getMTime());let De=pe.getPointData()&&pe.getPointData().getScalars(),he=De?De.getNumberOfComponents():1,St=He.getUseIndependentComponents(he)?he:1;for(let Ve=0;Ve<St;Ve++)f=Math.max(f,He.getRGBTransferFunction(Ve).getMTime(),He.getScalarOpacity(Ve).getMTime())}if(f<e.SSBO.getSendTime())return;let u=e.WebGPURenderer.getStabilizedCenterByReference(),g=e.SSBO.getSizeInBytes()===0||e.SSBO.getNumberOfInstances()!==e.volumes.length;g&&(e.SSBO.clearData(),e.SSBO.setNumberOfInstances(e.volumes.length));let l=new Float64Array(e.volumes.length*16),h=new Float64Array(e.volumes.length*16),y=new Float64Array(e.volumes.length*16),p=Array.from({length:6},()=>new Float64Array(e.volumes.length*4)),v=new Float64Array(e.volumes.length*4),x=new Float64Array(e.volumes.length*4),S=new Float64Array(e.volumes.length*4),T=new Float64Array(e.volumes.length*4),d=new Float64Array(e.volumes.length*4),C=new Float64Array(e.volumes.length*4),w=new Float64Array(e.volumes.length*4),D=new Float64Array(e.volumes.length*4),m=new Float64Array(e.volumes.length*4),M=new Float64Array(e.volumes.length*4),R=new Float64Array(e.volumes.length*4),E=new Float64Array(e.volumes.length*4),V=new Float64Array(e.volumes.length*4),N=new Float64Array(e.volumes.length*4),_=new Float64Array(e.volumes.length*4),L=new Float64Array(e.volumes.length*4);for(let P=0;P<e.volumes.length;P++){let H=e.volumes[P].getRenderable(),fe=H.getMapper(),pe=fe.getInputData(),He=pe.getPointData()&&pe.getPointData().getScalars(),De=He.getNumberOfComponents(),he=H.getProperty();F.identity(Pe),F.translate(Pe,Pe,u);let St=H.getMatrix();F.transpose(ft,St),F.invert(ft,ft),F.multiply(Pe,ft,Pe);let Ve=pe.getWorldToIndex();F.multiply(Pe,Ve,Pe);let Ie=pe.getDimensions();F.fromTranslation(ft,[.5,.5,.5]),F.multiply(Pe,ft,Pe),F.identity(ft),F.scale(ft,ft,[1/Ie[0],1/Ie[1],1/Ie[2]]),F.multiply(Pe,ft,Pe);for(let Z=0;Z<16;Z++)l[P*16+Z]=Pe[Z];F.invert(Wv,c.scvc),F.multiply(ft,Pe,Wv);for(let Z=0;Z<16;Z++)h[P*16+Z]=ft[Z];F.invert(Pe,Pe);for(let Z=0;Z<4;Z++)y[P*16+Z*4]=Pe[Z*4],y[P*16+Z*4+1]=Pe[Z*4+1],y[P*16+Z*4+2]=Pe[Z*4+2],y[P*16+Z*4+3]=0;x[P*4]=1/Ie[0],x[P*4+1]=1/Ie[1],x[P*4+2]=1/Ie[2],x[P*4+3]=1,S[P*4]=H.getProperty().getShade()?1:0,S[P*4+1]=he.getComputeNormalFromOpacity()?1:0,S[P*4+2]=i.getTwoSidedLighting()?1:0,T[P*4]=he.getAmbient(),T[P*4+1]=he.getDiffuse(),T[P*4+2]=he.getSpecular(),T[P*4+3]=he.getSpecularPower()===0?1:he.getSpecularPower(),d[P*4]=he.getVolumetricScatteringBlending(),d[P*4+1]=he.getGlobalIlluminationReach(),d[P*4+2]=he.getAnisotropy(),d[P*4+3]=he.getAnisotropy()*he.getAnisotropy(),F.multiply(kc,c.scvc,Pe),W.transformMat4(Av,[0,0,0],kc),W.transformMat4(Pv,[1,1,1],kc),C[P*4]=W.distance(Pv,Av),C[P*4+1]=fe.getSampleDistance()*fe.getVolumeShadowSamplingDistFactor(),w[P*4]=he.getLocalAmbientOcclusion()&&he.getAmbient()>0?he.getLAOKernelSize():0,w[P*4+1]=he.getLAOKernelRadius();let Ln=pe.getSpacing();D[P*4]=Ln[0],D[P*4+1]=Ln[1],D[P*4+2]=Ln[2],D[P*4+3]=1;let Lt=e.textureViews[P+4].getTexture().getScale(),Ct=H.getProperty().getIpScalarRange(),_n=H.getProperty().getFilterMode();for(let Z=0;Z<De;Z++){let rt=Ct[0],dt=Ct[1];if(_n!==dc.RAW){let wt=He.getRange(Z),Ht=wt[1]-wt[0];rt=wt[0]+rt*Ht,dt=wt[0]+dt*Ht}m[P*4+Z]=rt/Lt,M[P*4+Z]=dt/Lt}R[P*4]=He.getNumberOfComponents();let Fn=he.getUseIndependentComponents(De);R[P*4+1]=Fn?1:0,R[P*4+2]=he.getColorMixPreset();let rr=0;if(he.getInterpolationType()===da.NEAREST)rr=15;else for(let Z=0;Z<De;Z++)he.getForceNearestInterpolation(Z)&&(rr|=1<<Z);R[P*4+3]=rr,E[P*4]=he.getUseLabelOutline()?1:0;let ar=he.getLabelOutlineOpacity();E[P*4+1]=Array.isArray(ar)?ar[0]??1:ar,E[P*4+2]=Lt,E[P*4+3]=0;for(let Z=0;Z<De;Z++){let rt=Lt,dt=he.getRGBTransferFunction(Fn?Z:0).getRange(),wt=dt[1]-dt[0],Ht=Math.abs(wt)>1e-6?1/wt:0;V[P*4+Z]=rt*Ht,N[P*4+Z]=-dt[0]*Ht;let sr=he.getScalarOpacity(Fn?Z:0).getRange(),Pr=sr[1]-sr[0],Pc=Math.abs(Pr)>1e-6?1/Pr:0;_[P*4+Z]=rt*Pc,L[P*4+Z]=-sr[0]*Pc}F.fromTranslation(ft,[-u[0],-u[1],-u[2]]);let ir=zv(fe,ft,e.clipPlanes);v[P*4]=ir;for(let Z=0;Z<ir;Z++){let rt=P*4;p[Z][rt]=e.clipPlanes[Z][0],p[Z][rt+1]=e.clipPlanes[Z][1],p[Z][rt+2]=e.clipPlanes[Z][2],p[Z][rt+3]=e.clipPlanes[Z][3]}}g&&(e.SSBO.addEntry("SCTCMatrix","mat4x4<f32>"),e.SSBO.addEntry("VCTCMatrix","mat4x4<f32>"),e.SSBO.addEntry("planeNormals","mat4x4<f32>"),e.SSBO.addEntry("shade","vec4<f32>"),e.SSBO.addEntry("lighting","vec4<f32>"),e.SSBO.addEntry("scattering","vec4<f32>"),e.SSBO.addEntry("shadow","vec4<f32>"),e.SSBO.addEntry("lao","vec4<f32>"),e.SSBO.addEntry("tstep","vec4<f32>"),e.SSBO.addEntry("spacing","vec4<f32>"),e.SSBO.addEntry("ipScalarRangeMin","vec4<f32>"),e.SSBO.addEntry("ipScalarRangeMax","vec4<f32>"),e.SSBO.addEntry("componentInfo","vec4<f32>"),e.SSBO.addEntry("labelOutline","vec4<f32>"),e.SSBO.addEntry("colorScale","vec4<f32>"),e.SSBO.addEntry("colorShift","vec4<f32>"),e.SSBO.addEntry("opacityScale","vec4<f32>"),e.SSBO.addEntry("opacityShift","vec4<f32>"),bv(e.SSBO,"clipPlane"),e.SSBO.addEntry("clipPlaneStates","vec4<f32>")),e.SSBO.setAllInstancesFromArray("SCTCMatrix",l),e.SSBO.setAllInstancesFromArray("VCTCMatrix",h),e.SSBO.setAllInstancesFromArray("planeNormals",y),e.SSBO.setAllInstancesFromArray("shade",S),e.SSBO.setAllInstancesFromArray("lighting",T),e.SSBO.setAllInstancesFromArray("scattering",d),e.SSBO.setAllInstancesFromArray("shadow",C),e.SSBO.setAllInstancesFromArray("lao",w),e.SSBO.setAllInstancesFromArray("tstep",x),e.SSBO.setAllInstancesFromArray("spacing",D),e.SSBO.setAllInstancesFromArray("ipScalarRangeMin",m),e.SSBO.setAllInstancesFromArray("ipScalarRangeMax",M),e.SSBO.setAllInstancesFromArray("componentInfo",R),e.SSBO.setAllInstancesFromArray("labelOutline",E),e.SSBO.setAllInstancesFromArray("colorScale",V),e.SSBO.setAllInstancesFromArray("colorShift",N),e.SSBO.setAllInstancesFromArray("opacityScale",_),e.SSBO.setAllInstancesFromArray("opacityShift",L);for(let P=0;P<6;P++)e.SSBO.setAllInstancesFromArray(`clipPlane${P}`,p[P]);e.SSBO.setAllInstancesFromArray("clipPlaneStates",v),e.SSBO.send(a);let B=e.componentSSBO.getSizeInBytes()===0||e.componentSSBO.getNumberOfInstances()!==e.numRows;B&&(e.componentSSBO.clearData(),e.componentSSBO.setNumberOfInstances(e.numRows));let b=new Float64Array(e.numRows),G=new Float64Array(e.numRows),U=new Float64Array(e.numRows),z=new Float64Array(e.numRows),A=new Float64Array(e.numRows),Q=new Float64Array(e.numRows),X=new Float64Array(e.numRows),te=new Float64Array(e.numRows),I=new Float64Array(e.numRows),oe=new Float64Array(e.numRows),ae=0;for(let P=0;P<e.volumes.length;P++){let H=e.volumes[P].getRenderable(),fe=H.getMapper(),pe=H.getProperty(),He=fe.getInputData(),De=(He.getPointData()&&He.getPointData().getScalars()).getNumberOfComponents(),he=pe.getUseIndependentComponents(De),St=he?De:1,Ve={scale:e.textureViews[P+4].getTexture().getScale(),offset:0};for(let Ie=0;Ie<St;Ie++){let Ln=he?Ie:0,Lt=0;he?Lt=Ie:(De===2||De===4)&&(Lt=De-1);let Ct=he?Ie:0,_n=Ve.scale,Fn=pe.getScalarOpacity(Lt).getRange(),rr=Fn[1]-Fn[0],ar=Math.abs(rr)>1e-6?1/rr:0;z[ae]=(Ve.offset-Fn[0])*ar,U[ae]=_n*ar;let ir=pe.getRGBTransferFunction(Ln).getRange(),Z=ir[1]-ir[0],rt=Math.abs(Z)>1e-6?1/Z:0;if(G[ae]=(Ve.offset-ir[0])*rt,b[ae]=_n*rt,I[ae]=he?pe.getComponentWeight?.(Ie)??1:1,oe[ae]=pe.getOpacityMode(Ct),pe.getUseGradientOpacity(Ct)){let dt=pe.getGradientOpacityMinimumOpacity(Ct),wt=pe.getGradientOpacityMaximumOpacity(Ct);A[ae]=dt,Q[ae]=wt;let Ht=[pe.getGradientOpacityMinimumValue(Ct),pe.getGradientOpacityMaximumValue(Ct)],sr=Ht[1]-Ht[0],Pr=Math.abs(sr)>1e-6?1/sr:0;te[ae]=_n*(wt-dt)*Pr,X[ae]=-Ht[0]*(wt-dt)*Pr+dt}else A[ae]=1,Q[ae]=1,te[ae]=0,X[ae]=1;ae++}}B&&(e.componentSSBO.addEntry("cScale","f32"),e.componentSSBO.addEntry("cShift","f32"),e.componentSSBO.addEntry("oScale","f32"),e.componentSSBO.addEntry("oShift","f32"),e.componentSSBO.addEntry("goShift","f32"),e.componentSSBO.addEntry("goScale","f32"),e.componentSSBO.addEntry("gomin","f32"),e.componentSSBO.addEntry("gomax","f32"),e.componentSSBO.addEntry("mixWeight","f32"),e.componentSSBO.addEntry("opacityMode","f32")),e.componentSSBO.setAllInstancesFromArray("cScale",b),e.componentSSBO.setAllInstancesFromArray("cShift",G),e.componentSSBO.setAllInstancesFromArray("oScale",U),e.componentSSBO.setAllInstancesFromArray("oShift",z),e.componentSSBO.setAllInstancesFromArray("goScale",te),e.componentSSBO.setAllInstancesFromArray("goShift",X),e.componentSSBO.setAllInstancesFromArray("gomin",A),e.componentSSBO.setAllInstancesFromArray("gomax",Q),e.componentSSBO.setAllInstancesFromArray("mixWeight",I),e.componentSSBO.setAllInstancesFromArray("opacityMode",oe),e.componentSSBO.send(a)};let n=t.updateBuffers;t.updateBuffers=()=>{n(),e.jitterSSBO||(e.jitterSSBO=e.device.getCachedObject("vtkWebGPUVolumePassFSQ-jitterSSBO",()=>{let c=Ea.newInstance({label:"jitterSSBO"});c.setNumberOfInstances(1024),c.addEntry("value","f32");let f=new Float32Array(1024);for(let u=0;u<f.length;u++)f[u]=Math.random();return c.setAllInstancesFromArray("value",f),c.send(e.device),c})),e.kernelSampleSSBO||(e.kernelSampleSSBO=e.device.getCachedObject("vtkWebGPUVolumePassFSQ-kernelSampleSSBO",()=>{let c=Ea.newInstance({label:"kernelSampleSSBO"});c.setNumberOfInstances(32),c.addEntry("value","vec2<f32>");let f=new Float32Array(64);for(let u=0;u<32;u++)f[u*2]=Math.random(),f[u*2+1]=Math.random();return c.setAllInstancesFromArray("value",f),c.send(e.device),c}));let a=e.WebGPURenderer.getRenderable().getVTKWindow()?.getInteractor()?.isAnimating()||!1,i=c=>c.getSampleDistance()*(a?c.getInteractionSampleDistanceFactor():1),s=i(e.volumes[0].getRenderable().getMapper());for(let c=0;c<e.volumes.length;c++){let f=i(e.volumes[c].getRenderable().getMapper());f<s&&(s=f)}let o=e.WebGPURenderer.getRenderable().getActiveCamera().getClippingRange();if(e.UBO.setValue("CamNear",o[0]),e.UBO.setValue("CamFar",o[1]),e.UBO.sendIfNeeded(e.device),e.sampleDist!==s){e.sampleDist=s,e.UBO.setValue("SampleDistance",s),e.UBO.sendIfNeeded(e.device);for(let c=0;c<e.volumes.length;c++){let f=e.volumes[c].getRenderable().getMapper(),u=f.getInputData().getBounds(),g=Math.hypot(u[1]-u[0],u[3]-u[2],u[5]-u[4]),l=Math.ceil(g/s);l>f.getMaximumSamplesPerRay()&&Uc(`The number of steps required ${l} is larger than the specified maximum number of steps ${f.getMaximumSamplesPerRay()}.
Please either change the volumeMapper sampleDistance or its maximum number of samples.`)}}for(let c=0;c<e.volumes.length;c++){let f=e.volumes[c],u=f.getRenderable(),g=u.getMapper().getInputData(),l=u.getProperty(),h=l?.getUpdatedExtents?.()??[],y=e.textureViews[c+4]?.getTexture(),p=!!l?.getPreferSizeOverAccuracy?.(),v=e.device.getTextureManager().getTextureForImageData(g,{updatedExtents:h,existingTexture:y,preferSizeOverAccuracy:p,owner:f});if(h.length&&l.setUpdatedExtents([]),!e.textureViews[c+4]||e.textureViews[c+4].getTexture()!==v){let x=v.createView(`volTexture${c}`);e.textureViews[c+4]=x}}{let c=e.volumes.map(u=>{let g=u.getRenderable().getProperty().getLabelOutlineThickness?.();return g==null?null:Array.isArray(g)?g:[g]}),f=JSON.stringify(c);if(e._labelThicknessHash!==f||e.volumes.length!==e.lastVolumeLength||!e.textureViews[4+e.volumes.length]){e._labelThicknessHash=f;let u=Math.max(1,...e.volumes.map(v=>v.getRenderable().getMapper().getLabelOutlineTextureWidth()));c.forEach(v=>{Array.isArray(v)&&(u=Math.max(u,v.length))});let g=u,l=Math.max(1,e.volumes.length),h=new Uint8Array(g*l);Zi(h,c.map(v=>v??[0]),g);let y={nativeArray:h,width:g,height:l,depth:1,format:"r8unorm"},p=e.device.getTextureManager().getTexture(y).createView("labelOutlineThicknessTexture");e.textureViews[4+e.volumes.length]=p}}e.textureViews.length=Math.min(e.textureViews.length,5+e.volumes.length),e.lastVolumeLength=e.volumes.length,t.updateLUTImage(e.device),t.updateSSBO(e.device),e.clampSampler||(e.clampSampler=br.newInstance({label:"clampSampler"}),e.clampSampler.create(e.device,{minFilter:"linear",magFilter:"linear"}))},t.computePipelineHash=()=>{e.pipelineHash="volfsq";for(let a=0;a<e.volumes.length;a++){let i=e.volumes[a].getRenderable(),s=i.getMapper(),o=i.getProperty(),c=s.getBlendMode(),f=s.getInputData()?.getPointData()?.getScalars()?.getNumberOfComponents?.()??0,u=Number(o.getUseIndependentComponents(f)),g=Number(c===qe.COMPOSITE_BLEND&&o.getUseLabelOutline()&&f===1);e.pipelineHash+=`${c}C${f}I${u}L${g}`}},t.setVolumes=a=>{if(!e.volumes||e.volumes.length!==a.length){e.volumes=[...a],t.modified();return}for(let i=0;i<a.length;i++)if(a[i]!==e.volumes[i]){e.volumes=[...a],t.modified();return}};let r=t.getBindables;t.getBindables=()=>{let a=r();return a.push(e.componentSSBO),a.push(e.jitterSSBO),a.push(e.kernelSampleSSBO),a.push(e.clampSampler),a}}var HV={volumes:null,colorRowLength:1024,opacityRowLength:1024,lastVolumeLength:0};function Hv(t,e,n={}){Object.assign(e,HV,n),Rn.extend(t,e,n),e.fragmentShaderTemplate=AV,e.UBO=ds.newInstance({label:"mapperUBO"}),e.UBO.addEntry("SampleDistance","f32"),e.UBO.addEntry("CamNear","f32"),e.UBO.addEntry("CamFar","f32"),e.SSBO=Ea.newInstance({label:"volumeSSBO"}),e.componentSSBO=Ea.newInstance({label:"componentSSBO"}),e.lutBuildTime={},O.obj(e.lutBuildTime,{mtime:0}),e.clipPlanes=Array.from({length:6},()=>[0,0,0,0]),PV(t,e)}var IV=O.newInstance(Hv,"vtkWebGPUVolumePassFSQ"),Iv={newInstance:IV,extend:Hv};var{Representation:jV}=_t,{BufferUsage:jv,PrimitiveTypes:$V}=Dn,bc=[[0,4,6],[0,6,2],[1,3,7],[1,7,5],[0,5,4],[0,1,5],[2,6,7],[2,7,3],[0,3,1],[0,2,3],[4,5,7],[4,7,6]],KV=`
//VTK::Renderer::Dec

//VTK::Select::Dec

//VTK::VolumePass::Dec

//VTK::TCoord::Dec

//VTK::RenderEncoder::Dec

//VTK::Mapper::Dec

//VTK::IOStructs::Dec

@fragment
fn main(
//VTK::IOStructs::Input
)
//VTK::IOStructs::Output
{
  var output : fragmentOutput;

  //VTK::Select::Impl

  //VTK::TCoord::Impl

  //VTK::VolumePass::Impl

  // The bounds are rasterized over the full texture, while opaque geometry is
  // rasterized in the renderer viewport. Map this fragment to that viewport
  // before reading the opaque depth.
  let depthTextureSize = vec2<f32>(textureDimensions(opaquePassDepthTexture));
  let opaqueDepthCoord = vec2<i32>(rendererUBO.viewportOrigin +
    input.fragPos.xy * rendererUBO.viewportSize / depthTextureSize);

  // use the maximum (closest) of the current value and the zbuffer
  // the blend func will then take the min to find the farthest stop value
  var stopval: f32 = max(input.fragPos.z,
    textureLoad(opaquePassDepthTexture, opaqueDepthCoord, 0));

  //VTK::RenderEncoder::Impl
  return output;
}
`,XV=`
//VTK::Renderer::Dec

//VTK::Mapper::Dec

//VTK::TCoord::Dec

//VTK::RenderEncoder::Dec

//VTK::IOStructs::Dec

@fragment
fn main(
//VTK::IOStructs::Input
)
//VTK::IOStructs::Output
{
  var output: fragmentOutput;

  var computedColor: vec4<f32> = textureSample(volumePassColorTexture,
    volumePassColorTextureSampler, mapperUBO.tscale*input.tcoordVS);

  //VTK::RenderEncoder::Impl
  return output;
}
`;function YV(t,e){e.classHierarchy.push("vtkWebGPUVolumePass"),t.initialize=n=>{e._clearEncoder||t.createClearEncoder(n),e._mergeEncoder||t.createMergeEncoder(n),e._copyEncoder||t.createCopyEncoder(n),e._depthRangeEncoder||t.createDepthRangeEncoder(n),e.fullScreenQuad||(e.fullScreenQuad=Iv.newInstance(),e.fullScreenQuad.setDevice(n.getDevice()),e.fullScreenQuad.setTextureViews([...e._depthRangeEncoder.getColorTextureViews()])),e._volumeCopyQuad||(e._volumeCopyQuad=Rn.newInstance(),e._volumeCopyQuad.setPipelineHash("volpassfsq"),e._volumeCopyQuad.setDevice(n.getDevice()),e._volumeCopyQuad.setFragmentShaderTemplate(XV),e._copyUBO=ds.newInstance({label:"mapperUBO"}),e._copyUBO.addEntry("tscale","vec2<f32>"),e._volumeCopyQuad.setUBO(e._copyUBO),e._volumeCopyQuad.setTextureViews([e._colorTextureView]))},t.traverse=(n,r)=>{if(e.deleted)return;e._currentParent=r,t.initialize(r),t.computeTiming(r),t.renderDepthBounds(n,r),e._firstGroup=!0;let a=r.getDevice(),i=a.getHandle().limits.maxSampledTexturesPerShaderStage-5;if(e.volumes.length>i){let s=n.getRenderable().getActiveCamera().getPosition(),o=[];for(let g=0;g<e.volumes.length;g++){let l=e.volumes[g].getRenderable().getBounds();o[g]=ze([.5*(l[1]+l[0]),.5*(l[3]+l[2]),.5*(l[5]+l[4])],s)}let c=[...Array(e.volumes.length).keys()];c.sort((g,l)=>o[l]-o[g]);let f=[],u=c.length%i;u===0&&(u=i);for(let g=0;g<c.length;g++)f.push(e.volumes[c[g]]),f.length>=u&&(t.rayCastPass(r,n,f),f=[],u=i,e._firstGroup=!1)}else t.rayCastPass(r,n,e.volumes);if(e._volumeCopyQuad.setWebGPURenderer(n),e._useSmallViewport){let s=e._colorTextureView.getTexture().getWidth(),o=e._colorTextureView.getTexture().getHeight();e._copyUBO.setArray("tscale",[e._smallViewportWidth/s,e._smallViewportHeight/o])}else e._copyUBO.setArray("tscale",[1,1]);e._copyUBO.sendIfNeeded(a),e._copyEncoder.setColorTextureView(0,e.colorTextureView),e._copyEncoder.attachTextureViews(),e._copyEncoder.begin(r.getCommandEncoder()),n.scissorAndViewport(e._copyEncoder),e._volumeCopyQuad.prepareAndDraw(e._copyEncoder),e._copyEncoder.end()},t.delete=O.chain(()=>{e._animationRateSubscription&&(e._animationRateSubscription.unsubscribe(),e._animationRateSubscription=null)},t.delete),t.computeTiming=n=>{let r=n.getRenderable().getInteractor();e._lastScale==null&&(e._lastScale=e.volumes[0].getRenderable().getMapper().getInitialInteractionScale()||1),e._useSmallViewport=!1,r.isAnimating()&&e._lastScale>1.5&&(e._useSmallViewport=!0),e._colorTexture.resize(n.getCanvas().width,n.getCanvas().height),e._animationRateSubscription||(e._animationRateSubscription=r.onAnimationFrameRateUpdate(()=>{let a=e.volumes[0].getRenderable().getMapper();if(a.getAutoAdjustSampleDistances()){let i=r.getRecentAnimationFrameRate();e._lastScale=e._lastScale*r.getDesiredUpdateRate()/i,e._lastScale>400&&(e._lastScale=400)}else e._lastScale=a.getImageSampleDistance()*a.getImageSampleDistance();e._lastScale<1.5&&(e._lastScale=1.5)}))},t.rayCastPass=(n,r,a)=>{let i=e._firstGroup?e._clearEncoder:e._mergeEncoder;i.attachTextureViews(),i.begin(n.getCommandEncoder());let s=e._colorTextureView.getTexture().getWidth(),o=e._colorTextureView.getTexture().getHeight();if(e._useSmallViewport){let c=n.getCanvas(),f=1/Math.sqrt(e._lastScale);e._smallViewportWidth=Math.ceil(f*c.width),e._smallViewportHeight=Math.ceil(f*c.height),s=e._smallViewportWidth,o=e._smallViewportHeight}i.getHandle().setViewport(0,0,s,o,0,1),i.getHandle().setScissorRect(0,0,s,o),e.fullScreenQuad.setWebGPURenderer(r),e.fullScreenQuad.setVolumes(a),e.fullScreenQuad.prepareAndDraw(i),i.end()},t.renderDepthBounds=(n,r)=>{t.updateDepthPolyData(n);let a=e._boundsPoly,i=a.getPoints(),s=a.getPolys(),o={hash:`vp${s.getMTime()}`,usage:jv.Index,cells:s,numberOfPoints:i.getNumberOfPoints(),primitiveType:$V.Triangles,representation:jV.SURFACE},c=r.getDevice().getBufferManager().getBuffer(o);e._mapper.getVertexInput().setIndexBuffer(c),o={usage:jv.PointArray,format:"float32x4",hash:`vp${i.getMTime()}${s.getMTime()}`,dataArray:i,indexBuffer:c,packExtra:!0};let f=r.getDevice().getBufferManager().getBuffer(o);e._mapper.getVertexInput().addBuffer(f,["vertexBC"]),e._mapper.setNumberOfVertices(f.getSizeInBytes()/f.getStrideInBytes()),t.drawDepthRange(n,r)},t.updateDepthPolyData=n=>{let r=e._lastMTimes.length!==e.volumes.length+1;for(let u=0;u<e.volumes.length;u++){let g=e.volumes[u],l=g.getRenderable(),h=l.getMapper(),y=h.getInputData(),p=Math.max(g.getMTime(),l.getMTime(),h.getMTime(),y?.getMTime()??0);p!==e._lastMTimes[u]&&(r=!0,e._lastMTimes[u]=p)}let a=n.getStabilizedTime();if((e._lastMTimes.length<=e.volumes.length||a!==e._lastMTimes[e.volumes.length])&&(r=!0,e._lastMTimes[e.volumes.length]=a),e._lastMTimes.length=e.volumes.length+1,!r)return;let i=n.getStabilizedCenterByReference(),s=e.volumes.length*8,o=new Float64Array(s*3),c=e.volumes.length*12,f=new Uint16Array(c*4);for(let u=0;u<e.volumes.length;u++){e.volumes[u].getBoundingCubePoints(o,u*24);let g=u*12*4,l=u*8;for(let h=0;h<12;h++)f[g++]=3,f[g++]=l+bc[h][0],f[g++]=l+bc[h][1],f[g++]=l+bc[h][2]}for(let u=0;u<o.length;u+=3)o[u]-=i[0],o[u+1]-=i[1],o[u+2]-=i[2];e._boundsPoly.getPoints().setData(o,3),e._boundsPoly.getPoints().modified(),e._boundsPoly.getPolys().setData(f,1),e._boundsPoly.getPolys().modified(),e._boundsPoly.modified()},t.drawDepthRange=(n,r)=>{e._depthRangeTexture.resizeToMatch(e.colorTextureView.getTexture()),e._depthRangeTexture2.resizeToMatch(e.colorTextureView.getTexture()),e._depthRangeEncoder.attachTextureViews(),t.setCurrentOperation("volumeDepthRangePass"),n.setRenderEncoder(e._depthRangeEncoder),n.volumeDepthRangePass(!0),e._mapper.setWebGPURenderer(n),e._mapper.prepareToDraw(e._depthRangeEncoder),e._mapper.registerDrawCallback(e._depthRangeEncoder),n.volumeDepthRangePass(!1)},t.createDepthRangeEncoder=n=>{let r=n.getDevice();e._depthRangeEncoder=ot.newInstance({label:"VolumePass DepthRange"}),e._depthRangeEncoder.setPipelineHash("volr"),e._depthRangeEncoder.setReplaceShaderCodeFunction(s=>{let o=s.getShaderDescription("fragment");o.addOutput("vec4<f32>","outColor1"),o.addOutput("vec4<f32>","outColor2");let c=o.getCode();c=Te.substitute(c,"//VTK::RenderEncoder::Impl",["output.outColor1 = vec4<f32>(1.0 - input.fragPos.z, 0.0, 0.0, 0.0);","output.outColor2 = vec4<f32>(1.0 - stopval, 0.0, 0.0, 0.0);"]).result,o.setCode(c)}),e._depthRangeEncoder.setDescription({colorAttachments:[{view:null,clearValue:[1,1,1,1],loadOp:"clear",storeOp:"store"},{view:null,clearValue:[0,0,0,0],loadOp:"clear",storeOp:"store"}]}),e._depthRangeEncoder.setPipelineSettings({primitive:{cullMode:"none"},fragment:{targets:[{format:"r16float",blend:{color:{srcFactor:"one",dstFactor:"one",operation:"min"},alpha:{srcFactor:"one",dstFactor:"one",operation:"min"}}},{format:"r16float",blend:{color:{srcFactor:"one",dstFactor:"one",operation:"max"},alpha:{srcFactor:"one",dstFactor:"one",operation:"max"}}}]}}),e._depthRangeTexture=Qe.newInstance({label:"volumePassMaxDepth"}),e._depthRangeTexture.create(r,{width:n.getCanvas().width,height:n.getCanvas().height,format:"r16float",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.TEXTURE_BINDING});let a=e._depthRangeTexture.createView("maxTexture");e._depthRangeEncoder.setColorTextureView(0,a),e._depthRangeTexture2=Qe.newInstance({label:"volumePassDepthMin"}),e._depthRangeTexture2.create(r,{width:n.getCanvas().width,height:n.getCanvas().height,format:"r16float",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.TEXTURE_BINDING});let i=e._depthRangeTexture2.createView("minTexture");e._depthRangeEncoder.setColorTextureView(1,i),e._mapper.setDevice(n.getDevice()),e._mapper.setTextureViews([e.depthTextureView])},t.createClearEncoder=n=>{e._colorTexture=Qe.newInstance({label:"volumePassColor"}),e._colorTexture.create(n.getDevice(),{width:n.getCanvas().width,height:n.getCanvas().height,format:"bgra8unorm",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.COPY_SRC}),e._colorTextureView=e._colorTexture.createView("volumePassColorTexture"),e._colorTextureView.addSampler(n.getDevice(),{minFilter:"linear",magFilter:"linear"}),e._clearEncoder=ot.newInstance({label:"VolumePass Clear"}),e._clearEncoder.setColorTextureView(0,e._colorTextureView),e._clearEncoder.setDescription({colorAttachments:[{view:null,clearValue:[0,0,0,0],loadOp:"clear",storeOp:"store"}]}),e._clearEncoder.setPipelineHash("volpf"),e._clearEncoder.setPipelineSettings({primitive:{cullMode:"none"},fragment:{targets:[{format:"bgra8unorm",blend:{color:{srcFactor:"src-alpha",dstFactor:"one-minus-src-alpha"},alpha:{srcFactor:"one",dstFactor:"one-minus-src-alpha"}}}]}})},t.createCopyEncoder=n=>{e._copyEncoder=ot.newInstance({label:"volumePassCopy"}),e._copyEncoder.setDescription({colorAttachments:[{view:null,loadOp:"load",storeOp:"store"}]}),e._copyEncoder.setPipelineHash("volcopypf"),e._copyEncoder.setPipelineSettings({primitive:{cullMode:"none"},fragment:{targets:[{format:"rgba16float",blend:{color:{srcFactor:"one",dstFactor:"one-minus-src-alpha"},alpha:{srcFactor:"one",dstFactor:"one-minus-src-alpha"}}}]}})},t.createMergeEncoder=n=>{e._mergeEncoder=ot.newInstance({label:"volumePassMerge"}),e._mergeEncoder.setColorTextureView(0,e._colorTextureView),e._mergeEncoder.setDescription({colorAttachments:[{view:null,loadOp:"load",storeOp:"store"}]}),e._mergeEncoder.setReplaceShaderCodeFunction(r=>{let a=r.getShaderDescription("fragment");a.addOutput("vec4<f32>","outColor");let i=a.getCode();i=Te.substitute(i,"//VTK::RenderEncoder::Impl",["output.outColor = vec4<f32>(computedColor.rgb, computedColor.a);"]).result,a.setCode(i)}),e._mergeEncoder.setPipelineHash("volpf"),e._mergeEncoder.setPipelineSettings({primitive:{cullMode:"none"},fragment:{targets:[{format:"bgra8unorm",blend:{color:{srcFactor:"src-alpha",dstFactor:"one-minus-src-alpha"},alpha:{srcFactor:"one",dstFactor:"one-minus-src-alpha"}}}]}})},t.setVolumes=n=>{if(!e.volumes||e.volumes.length!==n.length){e._lastScale=null,e._lastMTimes.length=0,e.volumes=[...n],t.modified();return}for(let r=0;r<n.length;r++)if(n[r]!==e.volumes[r]){e._lastScale=null,e._lastMTimes.length=0,e.volumes=[...n],t.modified();return}},t.releaseGraphicsResources=()=>{e._animationRateSubscription&&(e._animationRateSubscription.unsubscribe(),e._animationRateSubscription=null),e._mapper.releaseGraphicsResources?.(),e._volumeCopyQuad?.releaseGraphicsResources?.(),e.fullScreenQuad?.releaseGraphicsResources?.(),e._clearEncoder=null,e._mergeEncoder=null,e._copyEncoder=null,e._depthRangeEncoder=null,e._colorTexture=null,e._colorTextureView=null,e._depthRangeTexture=null,e._depthRangeTexture2=null,e._volumeCopyQuad=null,e.fullScreenQuad=null,e._copyUBO=null,e.colorTextureView=null,e.depthTextureView=null}}var qV={colorTextureView:null,depthTextureView:null,volumes:null};function $v(t,e,n={}){Object.assign(e,qV,n),Ze.extend(t,e,n),e._mapper=ps.newInstance(),e._mapper.setFragmentShaderTemplate(KV),e._mapper.getShaderReplacements().set("replaceShaderVolumePass",(r,a,i)=>{a.getShaderDescription("fragment").addBuiltinInput("vec4<f32>","@builtin(position) fragPos")}),e._boundsPoly=We.newInstance(),e._lastMTimes=[],O.setGet(t,e,["colorTextureView","depthTextureView"]),YV(t,e)}var ZV=O.newInstance($v,"vtkWebGPUVolumePass"),Kv={newInstance:ZV,extend:$v};var QV=`
//VTK::Mapper::Dec

//VTK::TCoord::Dec

//VTK::RenderEncoder::Dec

//VTK::IOStructs::Dec

@fragment
fn main(
//VTK::IOStructs::Input
)
//VTK::IOStructs::Output
{
  var output: fragmentOutput;

  var texCoord: vec2<i32> =
    vec2<i32>(i32(input.fragPos.x), i32(input.fragPos.y));
  var computedColor: vec4<f32> = clamp(
    textureLoad(opaquePassColorTexture, texCoord, 0),
    vec4<f32>(0.0),
    vec4<f32>(1.0)
  );

  //VTK::RenderEncoder::Impl
  return output;
}
`;function JV(t,e){e.classHierarchy.push("vtkForwardPass"),t.traverse=(n,r=null)=>{if(e.deleted)return;e._currentParent=r;let a=!!r?.getCaptureDelegateOutput?.();t.setCurrentOperation("buildPass"),n.traverse(t),e.opaquePass||(e.opaquePass=Ov.newInstance());let i=n.getRenderable().getNumberOfLayers(),s=n.getChildren();for(let o=0;o<i;o++)for(let c=0;c<s.length;c++){let f=s[c],u=n.getRenderable().getRenderers()[c];u.getDraw()&&u.getLayer()===o&&(e.opaqueActorCount=0,e.translucentActorCount=0,e.volumes=[],t.setCurrentOperation("queryPass"),f.traverse(t),t.setCurrentOperation("cameraPass"),f.traverse(t),e.opaquePass.traverse(f,n),e.translucentActorCount>0&&(e.translucentPass||(e.translucentPass=Mv.newInstance()),e.translucentPass.setColorTextureView(e.opaquePass.getColorTextureView()),e.translucentPass.setDepthTextureView(e.opaquePass.getDepthTextureView()),e.translucentPass.traverse(f,n)),e.volumes.length>0&&(e.volumePass||(e.volumePass=Kv.newInstance()),e.volumePass.setColorTextureView(e.opaquePass.getColorTextureView()),e.volumePass.setDepthTextureView(e.opaquePass.getDepthTextureView()),e.volumePass.setVolumes(e.volumes),e.volumePass.traverse(f,n)),a||t.finalPass(n,f))}},t.finalPass=(n,r)=>{e._finalBlitEncoder||t.createFinalBlitEncoder(n),e._finalBlitOutputTextureView.createFromTextureHandle(n.getCurrentTexture(),{depth:1,format:n.getPresentationFormat()}),e._finalBlitEncoder.attachTextureViews(),e._finalBlitEncoder.begin(n.getCommandEncoder()),r.scissorAndViewport(e._finalBlitEncoder),e._fullScreenQuad.prepareAndDraw(e._finalBlitEncoder),e._finalBlitEncoder.end()},t.createFinalBlitEncoder=n=>{e._finalBlitEncoder=ot.newInstance({label:"forwardPassBlit"}),e._finalBlitEncoder.setDescription({colorAttachments:[{view:null,loadOp:"load",storeOp:"store"}]}),e._finalBlitEncoder.setPipelineHash("fpf"),e._finalBlitEncoder.setPipelineSettings({primitive:{cullMode:"none"},fragment:{targets:[{format:n.getPresentationFormat(),blend:{color:{srcFactor:"src-alpha",dstFactor:"one-minus-src-alpha"},alpha:{srcFactor:"one",dstFactor:"one-minus-src-alpha"}}}]}}),e._fsqSampler=br.newInstance({label:"finalPassSampler"}),e._fsqSampler.create(n.getDevice(),{minFilter:"linear",magFilter:"linear"}),e._fullScreenQuad=Rn.newInstance(),e._fullScreenQuad.setDevice(n.getDevice()),e._fullScreenQuad.setPipelineHash("fpfsq"),e._fullScreenQuad.setTextureViews([e.opaquePass.getColorTextureView()]),e._fullScreenQuad.setAdditionalBindables([e._fsqSampler]),e._fullScreenQuad.setFragmentShaderTemplate(QV),e._fullScreenQuad.getShaderReplacements().set("replaceShaderTCoord",(r,a)=>{let i=a.getShaderDescription("vertex");i.hasOutput("tcoordVS")||i.addOutput("vec2<f32>","tcoordVS"),a.getShaderDescription("fragment").addBuiltinInput("vec4<f32>","@builtin(position) fragPos")}),e._finalBlitOutputTextureView=hs.newInstance(),e._finalBlitEncoder.setColorTextureView(0,e._finalBlitOutputTextureView)},t.incrementOpaqueActorCount=()=>e.opaqueActorCount++,t.incrementTranslucentActorCount=()=>e.translucentActorCount++,t.addVolume=n=>{e.volumes.push(n)},t.releaseGraphicsResources=()=>{e.opaquePass?.releaseGraphicsResources?.(),e.translucentPass?.releaseGraphicsResources?.(),e.volumePass?.releaseGraphicsResources?.(),e.opaquePass=null,e.translucentPass=null,e.volumePass=null,e._finalBlitEncoder=null,e._finalBlitOutputTextureView=null,e._fullScreenQuad=null,e._fsqSampler=null}}var eL={opaqueActorCount:0,translucentActorCount:0,volumes:null,opaqueRenderEncoder:null,translucentPass:null,volumePass:null};function Xv(t,e,n={}){Object.assign(e,eL,n),Ze.extend(t,e,n),O.setGet(t,e,["opaquePass","translucentPass","volumePass"]),JV(t,e)}var tL=O.newInstance(Xv,"vtkForwardPass"),Yv={newInstance:tL,extend:Xv};var{vtkErrorMacro:Da,vtkWarningMacro:nL}=O;function qv(t,e,n){let r=!0;return Object.entries(t).forEach(([a,i])=>{let s=e?.[a];(typeof s!="number"||s<i)&&(nL(`WebGPU ${n} limit "${a}" is ${s??"unavailable"}, but vtk.js requested ${i}.`),r=!1)}),r}function rL(t,e){e.classHierarchy.push("vtkWebGPUConfiguration");function n(a){a.lost?.then(()=>{e.device===a&&(e.device=null,e.adapter=null,e.deviceReady=!1,t.modified())})}function r(a){a.addEventListener?.("uncapturederror",i=>{let s=i.error;Da(`WebGPU uncaptured error: ${s?.message||String(s)}`)})}t.initialize=async()=>{if(e.deviceReady)return!0;if(e.initializationPromise)return e.initializationPromise;let a=e.initializationGeneration,i=(async()=>{if(!navigator.gpu)return Da("WebGPU is not enabled."),!1;try{let s=await navigator.gpu.requestAdapter({powerPreference:e.powerPreference});if(!s)return Da("Failed to acquire a WebGPU adapter."),!1;let o=(e.optionalFeatures||[]).filter(u=>s.features.has(u)),c=e.requiredLimits||{maxBufferSize:s.limits.maxBufferSize,maxStorageBufferBindingSize:s.limits.maxStorageBufferBindingSize,maxUniformBufferBindingSize:s.limits.maxUniformBufferBindingSize};if(!qv(c,s.limits,"adapter"))return!1;let f=await s.requestDevice({requiredFeatures:o,requiredLimits:c});return f?!qv(c,f.limits,"device")||e.initializationGeneration!==a?(f.destroy(),!1):(e.adapter=s,e.device=f,e.deviceReady=!0,n(f),r(f),!0):(Da("Failed to acquire a WebGPU device."),!1)}catch(s){return Da(`WebGPU device creation failed: ${s?.message||String(s)}`),!1}})();e.initializationPromise=i;try{return await i}finally{e.initializationPromise===i&&(e.initializationPromise=null)}},t.isInitialized=()=>e.deviceReady,t.hasFeature=a=>!!e.device?.features?.has(a),t.getFeature=a=>t.hasFeature(a),t.finalize=()=>{e.initializationGeneration+=1,e.initializationPromise=null,e.device?.destroy?.(),e.device=null,e.adapter=null,e.deviceReady=!1}}var aL={adapter:null,device:null,deviceReady:!1,initializationPromise:null,initializationGeneration:0,powerPreference:"high-performance",requiredLimits:void 0,optionalFeatures:["float32-filterable","primitive-index","texture-formats-tier1"]};function Zv(t,e,n={}){Object.assign(e,aL,n),O.obj(t,e),O.get(t,e,["adapter","device","deviceReady"]),O.setGet(t,e,["powerPreference","requiredLimits","optionalFeatures"]),rL(t,e)}var iL=O.newInstance(Zv,"vtkWebGPUConfiguration"),zc={newInstance:iL,extend:Zv};var{VtkDataTypes:Vn}=Y,Qv=2048,sL="texture-formats-tier1";function oL(t,e){e.classHierarchy.push("vtkWebGPUTextureManager");function n(m){switch(m){case 1:return"r";case 2:return"rg";default:return"rgba"}}function r(m){return e.device.hasFeature(sL)?m===Vn.SHORT?"16snorm":m===Vn.UNSIGNED_SHORT?"16unorm":null:null}function a(m){let M=m.getMTime(),R=e.scalarFormats.get(m);return R?.scalarMTime!==M&&(R={contentTime:void 0,contentVersion:0,halfFloatFitVersion:-1,formats:[],scalarMTime:M,promotedFormat:R?.promotedFormat??null,liveTextures:R?.liveTextures??new Map},e.scalarFormats.set(m,R)),R}function i(m,M){if(M)return null;let R=a(m);return R.promotedFormat&&!u(R.promotedFormat,m)&&(R.promotedFormat=null),R.promotedFormat}function s(m,M){let R=i(m,M);if(R)return R;let E=a(m),V=M?1:0,N=E.formats[V]??null;return!M&&N?.endsWith("16float")&&E.halfFloatFitVersion!==E.contentVersion?null:N}function o(m,M,R){let E=a(m),V=R?1:0;E.formats[V]=M,!R&&M.endsWith("32float")&&(E.promotedFormat=M)}function c(m,M){let R=a(m),E=R.halfFloatFitVersion===R.contentVersion;return R.contentTime!==M&&(R.contentTime=M,R.contentVersion++),{previousContentFitsHalfFloat:E,version:R.contentVersion}}function f(m,M){a(m).halfFloatFitVersion=M}function u(m,M){let R=M.getNumberOfComponents(),E=R===3?4:R;if(Fe.getDetailsFromTextureFormat(m)?.numComponents!==E)return!1;let V=M.getDataType();if(V===Vn.UNSIGNED_CHAR||V===Vn.UNSIGNED_CHAR_CLAMPED)return m.endsWith("8unorm");let N=r(V);return N?m.endsWith(N):m.endsWith("16float")||m.endsWith("32float")}function g(m){let M=m.getData();for(let R=0;R<M.length;R++)if(M[R]<-2048||M[R]>Qv)return!1;return!0}function l(m,M,R){let E=m.getData(),V=m.getNumberOfComponents(),N=M[0]*V,_=M[1]*N;for(let L=0;L<R.length;L++){let[B,b,G,U,z,A]=R[L],Q=(b-B+1)*V;for(let X=z;X<=A;X++)for(let te=G;te<=U;te++){let I=X*_+te*N+B*V,oe=I+Q;for(let ae=I;ae<oe;ae++)if(E[ae]<-2048||E[ae]>Qv)return!1}}return!0}function h(m){let M=m.dataArray.getDataType();if(M===Vn.UNSIGNED_CHAR||M===Vn.UNSIGNED_CHAR_CLAMPED)return"8unorm";let R=r(M);return R||(m.forceFloat32?"32float":!m.preferSizeOverAccuracy&&e.device.hasFeature("float32-filterable")?(m.fitsHalfFloat=g(m.dataArray),m.fitsHalfFloat?"16float":"32float"):"16float")}function y(m){if(m.imageData){m.dataArray=m.imageData.getPointData().getScalars(),m.time=m.dataArray.getMTime(),m.nativeArray=m.dataArray.getData();let M=m.imageData.getDimensions();m.width=M[0],m.height=M[1],m.depth=M[2];let R=m.dataArray.getNumberOfComponents();if(m.format=n(R),R===3){let E=m.nativeArray,V=O.newTypedArray(E.constructor.name,E.length/3*4),N=E.BYTES_PER_ELEMENT===1?255:1;for(let _=0,L=0;_<E.length;_+=3,L+=4)V[L]=E[_],V[L+1]=E[_+1],V[L+2]=E[_+2],V[L+3]=N;m.nativeArray=V}m.existingFormat?m.format=m.existingFormat:m.format+=h(m)}m.image&&(m.width=m.image.width,m.height=m.image.height,m.depth=1,m.format="rgba8unorm",m.flip=!0,m.usage=GPUTextureUsage.STORAGE_BINDING|GPUTextureUsage.COPY_DST|GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.RENDER_ATTACHMENT),m.jsImageData&&(m.width=m.jsImageData.width,m.height=m.jsImageData.height,m.depth=1,m.format="rgba8unorm",m.flip=!0,m.nativeArray=m.jsImageData.data,m.usage=GPUTextureUsage.STORAGE_BINDING|GPUTextureUsage.COPY_DST|GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.RENDER_ATTACHMENT),m.imageBitmap&&(m.width=m.imageBitmap.width,m.height=m.imageBitmap.height,m.depth=1,m.format="rgba8unorm",m.flip=!0,m.usage=GPUTextureUsage.STORAGE_BINDING|GPUTextureUsage.COPY_DST|GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.RENDER_ATTACHMENT),m.canvas&&(m.width=m.canvas.width,m.height=m.canvas.height,m.depth=1,m.format="rgba8unorm",m.flip=!0,m.usage=GPUTextureUsage.STORAGE_BINDING|GPUTextureUsage.COPY_DST|GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.RENDER_ATTACHMENT),m.usage===void 0&&(m.usage=GPUTextureUsage.TEXTURE_BINDING|GPUTextureUsage.COPY_DST)}function p(m){let M=Qe.newInstance({label:m.label});return M.create(e.device,{width:m.width,height:m.height,depth:m.depth,format:m.format,usage:m.usage,mipLevel:m.mipLevel}),(m.nativeArray||m.image||m.canvas||m.imageBitmap)&&M.writeImageData(m),M}function v(m,M){return!!m?.getHandle?.()&&m.getFormat()===M.format&&m.getWidth()===M.width&&m.getHeight()===M.height&&m.getDepth()===M.depth&&m.getMipLevel?.()===(M.mipLevel??0)&&m.getUsage?.()===M.usage}function x(m,M,R){let E=[M.width,M.height,M.depth];for(let V=0;V<R.length;V++){let N=R[V];if(m.writeSubImageData({x:N[0],y:N[2],z:N[4],width:N[1]-N[0]+1,height:N[3]-N[2]+1,depth:N[5]-N[4]+1,nativeArray:M.nativeArray,sourceLayout:{width:E[0],height:E[1],depth:E[2],x:N[0],y:N[2],z:N[4]},deferMipmaps:!0})===!1)return!1}return m.generateMipmaps?.(),!0}function S(m){let M=(e.textureUseCounts.get(m)??1)-1;if(M>0){e.textureUseCounts.set(m,M);return}e.textureUseCounts.delete(m),e.device.afterNextSubmit(()=>{e.textureUseCounts.has(m)||e.unownedTextures.has(m)||(e.device.removeCachedObject(m),m.destroy?.())})}function T(m,M){let R=e.textureOwners.get(m);R!==M&&(e.textureOwners.set(m,M),e.textureUseCounts.set(M,(e.textureUseCounts.get(M)??0)+1),R&&S(R))}t.releaseTexture=m=>{let M=e.textureOwners.get(m);M&&(e.textureOwners.delete(m),S(M))};function d(m){return`${m.format}:${m.mipLevel??0}:${m.usage}`}function C(m){let M=a(m.dataArray).liveTextures.get(d(m))?.deref();return!M||!v(M,m)?null:(M.writeImageData(m),e.device.getCachedObject(m.hash,()=>M),M)}function w(m,M){M&&typeof M=="object"&&a(m.dataArray).liveTextures.set(d(m),new WeakRef(M))}t.getTexture=m=>m.hash?e.device.getCachedObject(m.hash,p,m):p(m);function D(m,M){let R={time:m.getMTime()},{updatedExtents:E,existingTexture:V}=M;R.imageData=m,R.preferSizeOverAccuracy=!!M.preferSizeOverAccuracy;let N=m.getPointData().getScalars(),{previousContentFitsHalfFloat:_,version:L}=c(N,m.getMTime());if(E?.length&&V){let A=V.getFormat(),Q=i(N,R.preferSizeOverAccuracy);if(Q&&Q!==A)R.forceFloat32=!0;else if(u(A,N)){let X=N.getDataType(),te=!R.preferSizeOverAccuracy&&X!==Vn.UNSIGNED_CHAR&&X!==Vn.UNSIGNED_CHAR_CLAMPED&&A.endsWith("16float")&&e.device.hasFeature("float32-filterable");!te||l(N,m.getDimensions(),E)?(R.existingFormat=A,R.partialFormat=!0,R.fitsHalfFloat=te&&_):R.forceFloat32=!0}}else R.existingFormat=s(m.getPointData().getScalars(),R.preferSizeOverAccuracy);y(R),R.time=Math.max(R.time,m.getMTime()),M.generateMipmaps&&R.depth===1&&R.format==="rgba8unorm"&&(R.mipLevel=Math.floor(Math.log2(Math.max(R.width,R.height,1))),R.usage=GPUTextureUsage.STORAGE_BINDING|GPUTextureUsage.COPY_DST|GPUTextureUsage.TEXTURE_BINDING),R.hash=`${R.time}:${R.format}:${R.mipLevel??0}:${R.usage}`;let B=e.device.hasCachedObject(R.hash),b=V;if(v(B,R)&&(b=B),E?.length&&v(b,R)){let A=x(b,R,E);if(A&&!B&&e.device.getCachedObject(R.hash,()=>b),A)return o(R.dataArray,R.format,R.preferSizeOverAccuracy),R.fitsHalfFloat&&f(R.dataArray,L),w(R,b),b}R.partialFormat&&(delete R.partialFormat,delete R.existingFormat,R.format=n(R.dataArray.getNumberOfComponents())+h(R),R.hash=`${R.time}:${R.format}:${R.mipLevel??0}:${R.usage}`),o(R.dataArray,R.format,R.preferSizeOverAccuracy),R.fitsHalfFloat&&f(R.dataArray,L);let G=e.device.hasCachedObject(R.hash);if(G)return G;let U=C(R);if(U)return U;let z=e.device.getTextureManager().getTexture(R);return w(R,z),z}t.getTextureForImageData=(m,M={})=>{let R=D(m,M);return R&&typeof R=="object"&&(M.owner?T(M.owner,R):e.unownedTextures.add(R)),R},t.getTextureForVTKTexture=(m,M=void 0)=>{let R={time:m.getMTime(),label:M};m.getInputData()?(R.imageData=m.getInputData(),R.existingFormat=s(R.imageData.getPointData().getScalars(),!1)):m.getImage()?R.image=m.getImage():m.getJsImageData()?R.jsImageData=m.getJsImageData():m.getImageBitmap()?R.imageBitmap=m.getImageBitmap():m.getCanvas()&&(R.canvas=m.getCanvas()),y(R),R.imageData&&o(R.dataArray,R.format,!1),R.time=Math.max(R.time,m.getMTime()),R.imageData&&(R.time=Math.max(R.time,R.imageData.getMTime())),R.mipLevel=m.getMipLevel(),R.hash=`${R.time}:${R.format}:${R.mipLevel??0}:${R.usage}`;let E=e.device.getTextureManager().getTexture(R);return E&&typeof E=="object"&&e.unownedTextures.add(E),E}}var cL={handle:null,device:null,scalarFormats:null,textureOwners:null,textureUseCounts:null,unownedTextures:null};function Jv(t,e,n={}){Object.assign(e,cL,n),e.scalarFormats=new WeakMap,e.textureOwners=new WeakMap,e.textureUseCounts=new Map,e.unownedTextures=new WeakSet,O.obj(t,e),O.setGet(t,e,["device"]),oL(t,e)}var fL=O.newInstance(Jv),ed={newInstance:fL,extend:Jv};var uL=class extends Map{constructor(){super(),this.registry=new FinalizationRegistry(t=>{let e=super.get(t);e&&e.deref&&e.deref()===void 0&&super.delete(t)})}getValue(t){let e=super.get(t);if(e){let n=e.deref();if(n!==void 0)return n;super.delete(t)}}setValue(t,e){let n;return e&&typeof e=="object"&&(n=new WeakRef(e),this.registry.register(e,t),super.set(t,n)),n}deleteValue(t){super.forEach((e,n)=>{e.deref()===t&&super.delete(n)})}};function lL(t,e){e.classHierarchy.push("vtkWebGPUDevice"),t.initialize=n=>{if(e.handle===n)return;e.handle=n,e.generation+=1;let r=e.generation;n?.lost?.then(a=>{e.handle===n&&e.generation===r&&t.invokeDeviceLost({info:a,generation:r})})},t.hasFeature=n=>!!e.handle?.features?.has(n),t.createCommandEncoder=()=>e.handle.createCommandEncoder(),t.submitCommandEncoder=n=>{e.handle.queue.submit([n.finish()]);let r=e.afterSubmitCallbacks;e.afterSubmitCallbacks=[];for(let a=0;a<r.length;a++)r[a]()},t.afterNextSubmit=n=>{e.afterSubmitCallbacks.push(n)},t.getShaderModule=n=>e.shaderCache.getShaderModule(n),t.getBindGroupLayout=n=>{if(!n.entries)return null;for(let i=0;i<n.entries.length;i++){let s=n.entries[i];s.binding=s.binding||0,s.visibility=s.visibility||GPUShaderStage.VERTEX|GPUShaderStage.FRAGMENT}let r=JSON.stringify(n);for(let i=0;i<e.bindGroupLayouts.length;i++)if(e.bindGroupLayouts[i].sval===r)return e.bindGroupLayouts[i].layout;let a=e.handle.createBindGroupLayout(n);return e.bindGroupLayouts.push({sval:r,layout:a}),a},t.getBindGroupLayoutDescription=n=>{for(let r=0;r<e.bindGroupLayouts.length;r++)if(e.bindGroupLayouts[r].layout===n)return e.bindGroupLayouts[r].sval;return vtkErrorMacro("layout not found"),console.trace(),null},t.getPipeline=n=>n in e.pipelines?e.pipelines[n]:null,t.createPipeline=(n,r)=>{r.initialize(t,n),e.pipelines[n]=r},t.onSubmittedWorkDone=()=>e.handle.queue.onSubmittedWorkDone(),t.hasCachedObject=n=>e.objectCache.getValue(n),t.removeCachedObject=n=>{e.objectCache.deleteValue(n)},t.getCachedObject=(n,r,...a)=>{if(!n)return vtkErrorMacro("attempt to cache an object without a hash"),null;let i=e.objectCache.getValue(n);if(i)return i;let s=r(...a);return e.objectCache.setValue(n,s),s}}var gL={handle:null,generation:0,pipelines:null,shaderCache:null,bindGroupLayouts:null,bufferManager:null,textureManager:null};function td(t,e,n={}){Object.assign(e,gL,n),se(t,e),Wa(t,e,"deviceLost"),ie(t,e,["handle"]),Oe(t,e,["generation","bufferManager","shaderCache","textureManager"]),e.objectCache=new uL,e.shaderCache=Te.newInstance(),e.shaderCache.setDevice(t),e.bindGroupLayouts=[],e.bufferManager=Dn.newInstance(),e.bufferManager.setDevice(t),e.textureManager=ed.newInstance(),e.textureManager.setDevice(t),e.pipelines={},e.afterSubmitCallbacks=[],lL(t,e)}var pL=J(td,"vtkWebGPUDevice"),nd={newInstance:pL,extend:td};function hL(t,e){e.classHierarchy.push("vtkWebGPUHardwareSelectionPass"),t.traverse=(n,r)=>{if(e.deleted)return;e._currentParent=null,t.setCurrentOperation("buildPass"),n.traverse(t);let a=n.getDevice();if(e.selectionRenderEncoder)e.colorTexture.resize(n.getCanvas().width,n.getCanvas().height),e.depthTexture.resizeToMatch(e.colorTexture);else{t.createRenderEncoder(),e.colorTexture=Qe.newInstance({label:"hardwareSelectorColor"}),e.colorTexture.create(a,{width:n.getCanvas().width,height:n.getCanvas().height,format:"rgba32uint",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.COPY_SRC});let i=e.colorTexture.createView("hardwareSelectColorTexture");e.selectionRenderEncoder.setColorTextureView(0,i),e.depthTexture=Qe.newInstance({label:"hardwareSelectorDepth"}),e.depthTexture.create(a,{width:n.getCanvas().width,height:n.getCanvas().height,format:"depth32float",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.COPY_SRC});let s=e.depthTexture.createView("hardwareSelectDepthTexture");e.selectionRenderEncoder.setDepthTextureView(s)}e.selectionRenderEncoder.attachTextureViews(),r.setRenderEncoder(e.selectionRenderEncoder),t.setCurrentOperation("cameraPass"),r.traverse(t),t.setCurrentOperation("opaquePass"),r.traverse(t)},t.createRenderEncoder=()=>{e.selectionRenderEncoder=ot.newInstance({label:"HardwareSelectionPass"}),e.selectionRenderEncoder.setPipelineHash("sel"),e.selectionRenderEncoder.setReplaceShaderCodeFunction(r=>{let a=r.getShaderDescription("fragment");a.addOutput("vec4<u32>","outColor");let i=a.getCode();i=Te.substitute(i,"//VTK::Select::Impl",["  var compositeID: u32 = 0u;","  var attributeID: u32 = compositeID;"]).result,i=Te.substitute(i,"//VTK::RenderEncoder::Impl",["output.outColor = vec4<u32>(mapperUBO.PropID, compositeID, attributeID + 1u, 0u);"]).result,a.setCode(i)});let n=e.selectionRenderEncoder.getDescription();n.colorAttachments[0].clearValue=[0,0,0,0],e.selectionRenderEncoder.setPipelineSettings({primitive:{cullMode:"none"},depthStencil:{depthWriteEnabled:!0,depthCompare:"greater-equal",format:"depth32float"},fragment:{targets:[{format:"rgba32uint",blend:void 0}]}})}}var vL={selectionRenderEncoder:null,colorTexture:null,depthTexture:null};function rd(t,e,n={}){Object.assign(e,vL,n),Ze.extend(t,e,n),O.get(t,e,["colorTexture","depthTexture"]),hL(t,e)}var dL=O.newInstance(rd,"vtkWebGPUHardwareSelectionPass"),ad={newInstance:dL,extend:rd};var{SelectionContent:TL,SelectionField:id}=Ur,{FieldAssociations:sd}=it,{vtkErrorMacro:od}=O;function xL(t){return`${t.propID} ${t.compositeID}`}function Wc(t,e,n,r){let a=((n.height-e-1)*n.colorBufferWidth+t)*4+r;return n.colorValues[a]}function Wr(t,e,n,r){let a=n<0?0:n;if(a===0){if(r[0]=e[0],r[1]=e[1],e[0]<0||e[0]>=t.width||e[1]<0||e[1]>=t.height)return null;let c=Wc(e[0],e[1],t,0);if(c<=0||c-1>=(t.props?.length??0))return null;let f={};f.propID=c-1,f.prop=t.props?.[f.propID];let u=Wc(e[0],e[1],t,1);(u<0||u>16777215)&&(u=0),f.compositeID=u-1;let g=Wc(e[0],e[1],t,2);if(g<1&&(g=u),f.attributeID=g-1,t.captureZValues){let l=(t.height-e[1]-1)*t.zbufferBufferWidth+e[0];f.zValue=t.depthValues[l],f.zValue=t.webGPURenderer.convertToOpenGLDepth(f.zValue),f.displayPosition=e}return f}let i=[e[0],e[1]],s=[0,0],o=Wr(t,e,0,r);if(o)return o;for(let c=1;c<a;++c){for(let f=i[1]>c?i[1]-c:0;f<=i[1]+c;++f)if(s[1]=f,i[0]>=c&&(s[0]=i[0]-c,o=Wr(t,s,0,r),o)||(s[0]=i[0]+c,o=Wr(t,s,0,r),o))return o;for(let f=i[0]>=c?i[0]-(c-1):0;f<=i[0]+(c-1);++f)if(s[0]=f,i[1]>=c&&(s[1]=i[1]-c,o=Wr(t,s,0,r),o)||(s[1]=i[1]+c,o=Wr(t,s,0,r),o))return o}return r[0]=e[0],r[1]=e[1],null}function yL(t,e,n){let r=[],a=0;return e.forEach((i,s)=>{let o=Ur.newInstance();switch(o.setContentType(TL.INDICES),t){case sd.FIELD_ASSOCIATION_CELLS:o.setFieldType(id.CELL);break;case sd.FIELD_ASSOCIATION_POINTS:o.setFieldType(id.POINT);break;default:od("Unknown field association")}o.getProperties().propID=i.info.propID,o.getProperties().prop=i.info.prop,o.getProperties().compositeID=i.info.compositeID,o.getProperties().attributeID=i.info.attributeID,o.getProperties().pixelCount=i.pixelCount,n.captureZValues&&(o.getProperties().displayPosition=[i.info.displayPosition[0],i.info.displayPosition[1],i.info.zValue],o.getProperties().worldPosition=n.webGPURenderWindow.displayToWorld(i.info.displayPosition[0],i.info.displayPosition[1],i.info.zValue,n.renderer)),o.setSelectionList(i.attributeIDs),r[a]=o,a++}),r}function mL(t,e,n,r,a){let i=Math.floor(e),s=Math.floor(n),o=Math.floor(r),c=Math.floor(a),f=new Map,u=[0,0];for(let g=s;g<=c;g++)for(let l=i;l<=o;l++){let h=Wr(t,[l,g],0,u);if(h){let y=xL(h);if(!f.has(y))f.set(y,{info:h,pixelCount:1,attributeIDs:[h.attributeID]});else{let p=f.get(y);p.pixelCount++,t.captureZValues&&h.zValue<p.info.zValue&&(p.info=h),p.attributeIDs.indexOf(h.attributeID)===-1&&p.attributeIDs.push(h.attributeID)}}}return yL(t.fieldAssociation,f,t)}function SL(t,e){e.classHierarchy.push("vtkWebGPUHardwareSelector"),t.attach=(n,r)=>{e._WebGPURenderWindow=n,e._renderer=r},t.getPropIDForSelection=(n,r=null)=>{if(e._selectionPropMap.has(n))return e._selectionPropMap.get(n);let a=e._selectionProps.length;return e._selectionPropMap.set(n,a),e._selectionProps.push(r),a},t.endSelection=()=>{e.WebGPURenderer.setSelector(null)},t.getSourceDataAsync=async(n=e._renderer)=>{if(!n||!e._WebGPURenderWindow)return od("Renderer and view must be set before calling Select."),!1;e._WebGPURenderWindow.getRenderable().preRender(),e._WebGPURenderWindow.getInitialized()||(e._WebGPURenderWindow.initialize(),await new Promise(y=>{e._WebGPURenderWindow.onInitialized(y)}));let r=e._WebGPURenderWindow.getViewNodeFor(n);if(!r)return!1;let a=r.getSuppressClear(),i=r.getSelector();e._selectionPropMap.clear(),e._selectionProps=[],r.setSuppressClear(!0),r.setSelector(t);try{e._selectionPass.traverse(e._WebGPURenderWindow,r)}finally{r.setSelector(i),r.setSuppressClear(a)}let s=e._WebGPURenderWindow.getDevice(),o=e._selectionPass.getColorTexture(),c=e._selectionPass.getDepthTexture(),f={area:[0,0,o.getWidth()-1,o.getHeight()-1],captureZValues:e.captureZValues,fieldAssociation:e.fieldAssociation,props:[...e._selectionProps],renderer:n,webGPURenderer:r,webGPURenderWindow:e._WebGPURenderWindow,width:o.getWidth(),height:o.getHeight()};f.colorBufferWidth=16*Math.floor((f.width+15)/16),f.colorBufferSizeInBytes=f.colorBufferWidth*f.height*4*4;let u=Pt.newInstance({label:"hardwareSelectColorBuffer"});u.setDevice(s),u.create(f.colorBufferSizeInBytes,GPUBufferUsage.MAP_READ|GPUBufferUsage.COPY_DST);let g=e._WebGPURenderWindow.getCommandEncoder();g.copyTextureToBuffer({texture:o.getHandle()},{buffer:u.getHandle(),bytesPerRow:16*f.colorBufferWidth,rowsPerImage:f.height},{width:f.width,height:f.height,depthOrArrayLayers:1});let l;e.captureZValues&&(f.zbufferBufferWidth=64*Math.floor((f.width+63)/64),l=Pt.newInstance({label:"hardwareSelectDepthBuffer"}),l.setDevice(s),f.zbufferSizeInBytes=f.height*f.zbufferBufferWidth*4,l.create(f.zbufferSizeInBytes,GPUBufferUsage.MAP_READ|GPUBufferUsage.COPY_DST),g.copyTextureToBuffer({texture:c.getHandle(),aspect:"depth-only"},{buffer:l.getHandle(),bytesPerRow:4*f.zbufferBufferWidth,rowsPerImage:f.height},{width:f.width,height:f.height,depthOrArrayLayers:1})),s.submitCommandEncoder(g);let h=u.mapAsync(GPUMapMode.READ);if(e.captureZValues){let y=l.mapAsync(GPUMapMode.READ);await Promise.all([h,y]),f.depthValues=new Float32Array(l.getMappedRange().slice()),l.unmap()}else await h;return f.colorValues=new Uint32Array(u.getMappedRange().slice()),u.unmap(),f.generateSelection=(y,p,v,x)=>mL(f,y,p,v,x),f}}var CL={_selectionPropMap:null,_selectionProps:null};function cd(t,e,n={}){Object.assign(e,CL,n),us.extend(t,e,n),e._selectionPass=ad.newInstance(),e._selectionPropMap=new Map,e._selectionProps=[],O.setGet(t,e,["_WebGPURenderWindow"]),O.moveToProtected(t,e,["WebGPURenderWindow"]),SL(t,e)}var wL=O.newInstance(cd,"vtkWebGPUHardwareSelector"),Ac={newInstance:wL,extend:cd};var fd=Object.create(null);function ud(t,e){fd[t]=e}function OL(t,e){e.classHierarchy.push("vtkWebGPUViewNodeFactory")}var RL={};function ld(t,e,n={}){Object.assign(e,RL,n),e.overrides=fd,Ya.extend(t,e,n),OL(t,e)}var ML=O.newInstance(ld,"vtkWebGPUViewNodeFactory"),gd={newInstance:ML,extend:ld};var{vtkErrorMacro:Ar,vtkWarningMacro:EL}=O,pd=new WeakMap;function DL(t){let e=pd.get(t);return e||(e=nd.newInstance(),e.initialize(t),pd.set(t,e)),e}var VL={position:"absolute",top:0,left:0,width:"100%",height:"100%"};function LL(t,e){e.classHierarchy.push("vtkWebGPURenderWindow"),t.getViewNodeFactory=()=>e.myFactory;function n(l,h=new Set){if(!l||h.has(l))return;h.add(l);let y=l.getChildren?.()||[];for(let p=0;p<y.length;p++){let v=y[p];v?.releaseGraphicsResources?.(),n(v,h)}}function r(){let l=t.onInitialized(()=>{l.unsubscribe(),e.deleted||t.traverseAllPasses()})}function a(l,h){if(e.deleted||h!==e.deviceGeneration||e.handlingDeviceLost)return;e.handlingDeviceLost=!0,e.deviceLostInfo=l;let y=l?.reason??"unknown",p=l?.message||"WebGPU device was lost.";EL(`WebGPU device lost (${y}): ${p}`),t.releaseGraphicsResources(),t.invokeDeviceLost({reason:y,message:p,recoverable:y!=="destroyed"}),y!=="destroyed"&&(r(),t.initialize()),e.handlingDeviceLost=!1}function i(l,h){e.deviceLostSubscription?.unsubscribe(),e.deviceLostSubscription=l.onDeviceLost(({info:y})=>{a(y,h)})}let s=[0,0];function o(){e.renderable&&(e.size[0]!==s[0]||e.size[1]!==s[1])&&(s[0]=e.size[0],s[1]=e.size[1],e.canvas.setAttribute("width",e.size[0]),e.canvas.setAttribute("height",e.size[1]),t.recreateSwapChain()),e.viewStream&&e.viewStream.setSize(e.size[0],e.size[1]),e.canvas.style.display=e.useOffScreen?"none":"block",e.el&&(e.el.style.cursor=e.cursorVisibility?e.cursor:"none"),e.containerSize=null}t.onModified(o),t.recreateSwapChain=()=>{e.context&&(e.context.unconfigure(),e.presentationFormat=navigator.gpu.getPreferredCanvasFormat(e.adapter),e.context.configure({device:e.device.getHandle(),format:e.presentationFormat,alphaMode:"premultiplied",usage:GPUTextureUsage.RENDER_ATTACHMENT|GPUTextureUsage.COPY_DST,width:e.size[0],height:e.size[1]}),e._configured=!0)},t.getCurrentTexture=()=>e.context.getCurrentTexture(),t.buildPass=l=>{if(l){if(!e.renderable)return;t.prepareNodes(),t.addMissingNodes(e.renderable.getRenderersByReference()),t.removeUnusedNodes(),t.initialize()}else e.initialized&&(e._configured||t.recreateSwapChain(),e.commandEncoder=e.device.createCommandEncoder())},t.initialize=()=>{if(!e.initializing){if(e.initializing=!0,e.deviceLostInfo=null,!navigator.gpu){Ar("WebGPU is not enabled."),e.initializing=!1;return}t.create3DContextAsync().then(l=>{!l||e.deleted||(e.initialized=!0,t.invokeInitialized())}).catch(l=>{e.initialized=!1,Ar(`WebGPU initialization failed: ${l.message}`)}).finally(()=>{e.initializing=!1})}},t.setContainer=l=>{e.el&&e.el!==l&&(e.canvas.parentNode!==e.el&&Ar("Error: canvas parent node does not match container"),e.el.removeChild(e.canvas),e.el.contains(e.bgImage)&&e.el.removeChild(e.bgImage)),e.el!==l&&(e.el=l,e.el&&(e.el.appendChild(e.canvas),e.useBackgroundImage&&e.el.appendChild(e.bgImage)),t.modified())},t.getContainer=()=>e.el,t.getContainerSize=()=>{if(!e.containerSize&&e.el){let{width:l,height:h}=e.el.getBoundingClientRect();e.containerSize=[l,h]}return e.containerSize||e.size},t.getFramebufferSize=()=>e.size,t.create3DContextAsync=async()=>{if(!await e.webGPUConfiguration.initialize())throw new Error("Failed to create a WebGPU device.");return e.deleted?!1:(e.adapter=e.webGPUConfiguration.getAdapter(),e.device=DL(e.webGPUConfiguration.getDevice()),e.deviceGeneration+=1,i(e.device,e.deviceGeneration),e.context=e.canvas.getContext("webgpu"),!0)},t.setWebGPUConfiguration=l=>e.initialized||e.initializing?(Ar("setWebGPUConfiguration() must be called before WebGPU initialization."),!1):l!=null&&!l.isA?.("vtkWebGPUConfiguration")?(Ar("setWebGPUConfiguration() expects a vtkWebGPUConfiguration or null."),!1):l===e.webGPUConfiguration?!1:(e.ownsWebGPUConfiguration&&(e.webGPUConfiguration.finalize(),e.webGPUConfiguration.delete()),e.ownsWebGPUConfiguration=l==null,e.webGPUConfiguration=l??zc.newInstance(),e.device=null,t.modified(),!0),t.releaseGraphicsResources=()=>{if(e.deviceLostSubscription?.unsubscribe(),e.deviceLostSubscription=null,e.renderPasses)for(let h=0;h<e.renderPasses.length;h++)e.renderPasses[h]?.releaseGraphicsResources?.();n(t);let l=Ze.newInstance();l.setCurrentOperation("Release"),l.traverse(t,null),e.context&&e.context.unconfigure(),e.adapter=null,e.ownsWebGPUConfiguration&&e.webGPUConfiguration.finalize(),e.device=null,e.context=null,e.commandEncoder=null,e._configured=!1,e.initialized=!1,e.initializing=!1},t.setBackgroundImage=l=>{e.bgImage.src=l.src},t.setUseBackgroundImage=l=>{e.useBackgroundImage=l,e.useBackgroundImage&&!e.el.contains(e.bgImage)?e.el.appendChild(e.bgImage):!e.useBackgroundImage&&e.el.contains(e.bgImage)&&e.el.removeChild(e.bgImage)};async function c(l=e.imageFormat){let h=document.createElement("canvas"),y=h.getContext("2d");h.width=e.canvas.width,h.height=e.canvas.height;let p=await t.getPixelsAsync(),v=new ImageData(p.colorValues,p.width,p.height);y.putImageData(v,0,0);let x=e.canvas.getBoundingClientRect();e.renderable.getRenderers().forEach(T=>{T.getViewProps().forEach(d=>{if(d.getContainer){let C=d.getContainer().getElementsByTagName("canvas");for(let w=0;w<C.length;w++){let D=C[w],m=D.getBoundingClientRect(),M=m.x-x.x,R=m.y-x.y;y.drawImage(D,M,R)}}})});let S=h.toDataURL(l);h.remove(),t.invokeImageReady(S)}t.captureNextImage=(l="image/png",{resetCamera:h=!1,size:y=null,scale:p=1}={})=>{if(e.deleted)return null;e.imageFormat=l;let v=e.notifyStartCaptureImage;return e.notifyStartCaptureImage=!0,e._screenshot={size:y||p!==1?y||e.size.map(x=>x*p):null},new Promise((x,S)=>{let T=t.onImageReady(d=>{if(e._screenshot.size===null)e.notifyStartCaptureImage=v,T.unsubscribe(),e._screenshot.placeHolder&&(e.size=e._screenshot.originalSize,t.modified(),e._screenshot.cameras&&e._screenshot.cameras.forEach(({restoreParamsFn:C,arg:w})=>C(w)),t.traverseAllPasses(),e.el.removeChild(e._screenshot.placeHolder),e._screenshot.placeHolder.remove(),e._screenshot=null),x(d);else{let C=document.createElement("img");if(C.style=VL,C.src=d,e._screenshot.placeHolder=e.el.appendChild(C),e.canvas.style.display="none",e._screenshot.originalSize=e.size,e.size=e._screenshot.size,e._screenshot.size=null,t.modified(),h){let w=h!==!0;e._screenshot.cameras=e.renderable.getRenderers().map(D=>{let m=D.getActiveCamera(),M=m.get("focalPoint","position","parallelScale");return{resetCameraArgs:w?{renderer:D}:void 0,resetCameraFn:w?h:D.resetCamera,restoreParamsFn:m.set,arg:JSON.parse(JSON.stringify(M))}}),e._screenshot.cameras.forEach(({resetCameraFn:D,resetCameraArgs:m})=>D(m))}t.traverseAllPasses()}})})},t.traverseAllPasses=()=>{if(!e.deleted)if(e.initialized){if(e.renderPasses)for(let l=0;l<e.renderPasses.length;++l)e.renderPasses[l].traverse(t,null);e.commandEncoder&&(e.device.submitCommandEncoder(e.commandEncoder),e.commandEncoder=null,e.notifyStartCaptureImage&&e.device.onSubmittedWorkDone().then(()=>{c()}))}else{t.initialize();let l=t.onInitialized(()=>{l.unsubscribe(),t.traverseAllPasses()})}},t.setViewStream=l=>{if(e.viewStream===l)return!1;if(e.subscription&&(e.subscription.unsubscribe(),e.subscription=null),e.viewStream=l,e.viewStream){let h=e.renderable.getRenderers()[0];h.getBackgroundByReference()[3]=0,t.setUseBackgroundImage(!0),e.subscription=e.viewStream.onImageReady(y=>t.setBackgroundImage(y.image)),e.viewStream.setSize(e.size[0],e.size[1]),e.viewStream.invalidateCache(),e.viewStream.render(),t.modified()}return!0},t.getUniquePropID=()=>e.nextPropID++,t.getPropFromID=l=>{for(let h=0;h<e.children.length;h++){let y=e.children[h].getPropFromID(l);if(y!==null)return y}return null},t.getPixelsAsync=async()=>{let l=e.device,h=e.renderPasses[0].getOpaquePass(),y=h.getResolveColorTexture()?h.getResolveColorTexture():h.getColorTexture(),p={width:y.getWidth(),height:y.getHeight()};p.colorBufferWidth=32*Math.floor((p.width+31)/32),p.colorBufferSizeInBytes=p.colorBufferWidth*p.height*8;let v=Pt.newInstance();v.setDevice(l),v.create(p.colorBufferSizeInBytes,GPUBufferUsage.MAP_READ|GPUBufferUsage.COPY_DST);let x=e.device.createCommandEncoder();x.copyTextureToBuffer({texture:y.getHandle()},{buffer:v.getHandle(),bytesPerRow:8*p.colorBufferWidth,rowsPerImage:p.height},{width:p.width,height:p.height,depthOrArrayLayers:1}),l.submitCommandEncoder(x),await v.mapAsync(GPUMapMode.READ),p.colorValues=new Uint16Array(v.getMappedRange().slice()),v.unmap();let S=new Uint8ClampedArray(p.height*p.width*4);for(let T=0;T<p.height;T++)for(let d=0;d<p.width;d++){let C=(T*p.width+d)*4,w=(T*p.colorBufferWidth+d)*4;S[C]=255*Xt.fromHalf(p.colorValues[w]),S[C+1]=255*Xt.fromHalf(p.colorValues[w+1]),S[C+2]=255*Xt.fromHalf(p.colorValues[w+2]),S[C+3]=255*Xt.fromHalf(p.colorValues[w+3])}return p.colorValues=S,p},t.createSelector=()=>{let l=Ac.newInstance();return l.setWebGPURenderWindow(t),l};let f=t.setSize;t.setSize=(...l)=>{let h=f(...l);return h&&t.invokeWindowResizeEvent({width:e.size[0],height:e.size[1]}),h};let u=t.setMultiSample;t.setMultiSample=l=>l!==1&&l!==4?(Ar(`Invalid multiSample value: ${l}. Supported values are 1 and 4. Ignoring.`),!1):u(l);function g(){e.ownsWebGPUConfiguration&&(e.webGPUConfiguration.finalize(),e.webGPUConfiguration.delete(),e.ownsWebGPUConfiguration=!1),e.webGPUConfiguration=null}t.delete=O.chain(t.delete,t.setViewStream,g)}var _L={initialized:!1,initializing:!1,handlingDeviceLost:!1,deviceGeneration:0,deviceLostInfo:null,deviceLostSubscription:null,context:null,adapter:null,webGPUConfiguration:null,ownsWebGPUConfiguration:!0,device:null,canvas:null,cursorVisibility:!0,cursor:"pointer",containerSize:null,renderPasses:[],notifyStartCaptureImage:!1,imageFormat:"image/png",useOffScreen:!1,useBackgroundImage:!1,nextPropID:1,xrSupported:!1,presentationFormat:null,multiSample:1};function FL(t,e,n={}){Object.assign(e,_L,n),e.device=null,e.ownsWebGPUConfiguration=e.webGPUConfiguration==null,e.webGPUConfiguration=e.webGPUConfiguration??zc.newInstance(),e.canvas=document.createElement("canvas"),e.canvas.style.width="100%",e.bgImage=new Image,e.bgImage.style.position="absolute",e.bgImage.style.left="0",e.bgImage.style.top="0",e.bgImage.style.width="100%",e.bgImage.style.height="100%",e.bgImage.style.zIndex="-1",ls.extend(t,e,n),e.myFactory=gd.newInstance(),e.renderPasses[0]=Yv.newInstance(),e.selector||(e.selector=Ac.newInstance(),e.selector.setWebGPURenderWindow(t)),O.event(t,e,"imageReady"),O.event(t,e,"initialized"),O.event(t,e,"deviceLost"),O.get(t,e,["commandEncoder","deviceLostInfo","device","webGPUConfiguration","presentationFormat","useBackgroundImage","xrSupported","multiSample"]),O.setGet(t,e,["initialized","context","canvas","renderPasses","notifyStartCaptureImage","cursor","useOffScreen","multiSample"]),O.setGetArray(t,e,["size"],2),O.event(t,e,"windowResizeEvent"),LL(t,e)}var hd=O.newInstance(FL,"vtkWebGPURenderWindow");wa("WebGPU",hd);ud("vtkRenderWindow",hd);var NL=o0.extractURLParameters();function BL(t,e){let n=t.invokeResize;delete t.invokeResize,e.renderWindow=V0.newInstance(),e.renderer=M0.newInstance(),e.renderWindow.addRenderer(e.renderer),e._apiSpecificRenderWindow=e.renderWindow.newAPISpecificView(NL.viewAPI??e.defaultViewAPI),e.renderWindow.addView(e._apiSpecificRenderWindow),e.interactor=ss.newInstance(),e.interactor.setInteractorStyle(v0.newInstance()),e.interactor.setView(e._apiSpecificRenderWindow),e.interactor.initialize(),t.setBackground=e.renderer.setBackground,t.setBackground(...e.background),t.resize=()=>{if(e.container){let r=e.container.getBoundingClientRect(),a=window.devicePixelRatio||1;e._apiSpecificRenderWindow.setSize(Math.floor(r.width*a),Math.floor(r.height*a)),n(),e.renderWindow.render()}},t.setContainer=r=>{e.container&&e.interactor.unbindEvents(e.container),e.container=r,e._apiSpecificRenderWindow.setContainer(e.container),e.container&&e.interactor.bindEvents(e.container)},t.delete=O.chain(t.setContainer,e._apiSpecificRenderWindow.delete,()=>{window.removeEventListener("resize",t.resize)},t.delete),e.listenWindowResize&&window.addEventListener("resize",t.resize),t.resize()}var GL={background:[.32,.34,.43],listenWindowResize:!0,container:null};function vd(t,e,n={}){Object.assign(e,GL,n),O.obj(t,e),O.get(t,e,["renderWindow","renderer","_apiSpecificRenderWindow","interactor","container"]),O.moveToProtected(t,e,["_apiSpecificRenderWindow"]),O.event(t,e,"resize"),BL(t,e)}var UL=O.newInstance(vd),kL={newInstance:UL,extend:vd};export{Sc as vtkColorTransferFunction,rc as vtkCubeAxesActor,Y as vtkDataArray,kL as vtkGenericRenderWindow,_o as vtkImageData,Fr as vtkPiecewiseFunction,dM as vtkVolume,wM as vtkVolumeMapper};
